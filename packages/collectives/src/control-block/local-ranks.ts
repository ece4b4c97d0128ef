import { ArgumentError } from "@skein/tensor-core";
import type { WasmMemory, WasmModule } from "@skein/tensor-core/backend";
import type { CollectiveError, LossKind } from "../errors.ts";
import type { Facts } from "../facts.ts";
import { checkKernels } from "../wasm-arithmetic.ts";
import { ControlBlock } from "./control-block.ts";
import { controlBytes } from "./layout.ts";
import type { ExpressEnd, Preference, WorldConnection } from "./world-connection.ts";

/**
 * State of a group, shared by the threads of one process: whether the group failed, and why. Each thread may have a
 * separate object for the same state.
 */
export interface GroupState {
  readonly closed: boolean;
  /** Returns the first failure as an error of this thread's rank, or undefined if the group has not failed. */
  failure(): CollectiveError | undefined;
  /** Returns the name of the collective with this tag, for error messages. Tag 0 means no collective. */
  nameOf(tag: number): string;
  /**
   * Makes the group unusable for all ranks of this process, and wakes all waiting threads. Only the first failure is
   * recorded.
   */
  failWith(error: unknown, tag: number): void;
  /** Makes the group unusable, like `failWith`, because a rank was lost. */
  failLost(rank: number, tag: number, reason: string, kind?: LossKind): void;
  /** Closes the group after the ranks of this process have finished. Threads that serve requests then return. */
  close(): void;
}

/** Returns the state of a connection's group, for use in a thread to which the connection was posted. */
export const openGroupState = (connection: WorldConnection): GroupState => new ControlBlock(connection);

/** Memory and kernels of the ranks of one process. */
export interface RankMemory {
  /** Shared memory for the operands of all requests of this process. */
  readonly memory: WasmMemory;
  /** Module with the reduction kernels (see `requiredExports`), or "none" to use plain JavaScript loops. */
  readonly kernels: WasmModule | "none";
}

export interface LocalRanksOptions extends RankMemory {
  readonly worldSize: number;
  /** Ranks of this process. */
  readonly ranks: readonly number[];
  /**
   * Whether only companions can execute requests, because only companions have connections to the ranks of other
   * processes.
   */
  readonly companionOnly: boolean;
  /** Maximum time that a rank waits for a peer before the group fails. */
  readonly timeoutMilliseconds: number;
  /**
   * Additional settings that must be equal on all ranks of all processes. Ranks compare these settings when they join.
   */
  readonly facts?: Facts | undefined;
}

/**
 * Settings of a local rank. The settings may depend on information that is available only after all ranks are known.
 */
export interface LocalPreference {
  /** Settings for the choice of algorithms. Default: the default of each setting. */
  readonly preference?: Preference;
  /** Number of polls before a rank sleeps. Default: 0, which suits ranks that share cores. */
  readonly spins?: number;
  /**
   * Byte offset, in the shared memory, of the exchange parts, which are the operands of small requests between threads.
   * Absent: no exchanges.
   */
  readonly exchangeParts?: number | undefined;
  /** This rank's ends of its express connections. Default: none. */
  readonly express?: readonly ExpressEnd[] | undefined;
}

/**
 * Checks the memory and kernels of a process.
 *
 * @throws ArgumentError if the memory is not shared or the module lacks a reduction.
 */
export const checkRankMemory = ({ memory, kernels }: RankMemory): void => {
  if (!(memory.buffer instanceof SharedArrayBuffer))
    throw new ArgumentError(
      "ranks of a process need a shared WebAssembly.Memory, and this memory is not shared; create it with { shared: true }",
    );
  if (kernels !== "none") checkKernels(kernels);
};

/**
 * The ranks that are threads of one process. The constructor creates the control block of these ranks; `connection`
 * returns the connection of one rank.
 */
export class LocalRanks {
  /** State of the group, with failures as errors of the first local rank. */
  readonly state: GroupState;
  readonly #options: LocalRanksOptions;
  readonly #control: SharedArrayBuffer;

  /**
   * Creates the control block of the ranks of this process.
   *
   * @throws ArgumentError if the memory is not shared, the module lacks a reduction, or a local rank is not in the
   * world.
   */
  constructor(options: LocalRanksOptions) {
    const { worldSize, ranks } = options;
    checkRankMemory(options);
    if (ranks.length === 0 || ranks.some((rank) => !Number.isInteger(rank) || rank < 0 || rank >= worldSize))
      throw new ArgumentError(
        `ranks ${ranks.join(", ")} are not in a world of ${worldSize}; use 0 to ${worldSize - 1}`,
      );
    this.#options = options;
    this.#control = new SharedArrayBuffer(controlBytes(worldSize, ranks.length));
    this.state = openGroupState(this.connection(ranks[0]!));
  }

  /**
   * Returns the connection that `joinWorld` takes for rank `rank`, and that `serveRequests` takes for the companion of
   * that rank. The connection can be posted to a worker.
   */
  connection(
    rank: number,
    { preference = {}, spins = 0, exchangeParts, express }: LocalPreference = {},
  ): WorldConnection {
    const { worldSize, ranks, memory, kernels, companionOnly, timeoutMilliseconds, facts } = this.#options;
    if (!ranks.includes(rank))
      throw new ArgumentError(`rank ${rank} is not in this process; use one of its ranks, ${ranks.join(", ")}`);
    return {
      control: this.#control,
      memory,
      kernels,
      rank,
      worldSize,
      localRanks: ranks,
      companionOnly,
      timeoutMilliseconds,
      spins,
      preference,
      ...(exchangeParts !== undefined && { exchangeParts }),
      ...(express && { express }),
      ...(facts && { facts }),
    };
  }
}
