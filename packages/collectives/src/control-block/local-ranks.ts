import { ArgumentError } from "@skein/tensor-core";
import type { WasmMemory, WasmModule } from "@skein/tensor-core/backend";
import type { CollectiveError, LossKind } from "../errors.ts";
import type { Facts } from "../facts.ts";
import { checkKernels } from "../wasm-arithmetic.ts";
import { ControlBlock } from "./control-block.ts";
import { controlBytes } from "./layout.ts";
import type { ExpressEnd, Preference, WorldConnection } from "./world-connection.ts";

/** Shared state of a group in one process: whether it failed, and why. Every thread may hold one. */
export interface GroupState {
  readonly closed: boolean;
  /** The first failure, as this thread's rank sees it. */
  failure(): CollectiveError | undefined;
  /** Returns the name of the collective of a tag, for errors. Tag 0 is no collective. */
  nameOf(tag: number): string;
  /**
   * Makes the group unusable for all ranks of this process, and wakes all waiting threads. The first failure is kept.
   */
  failWith(error: unknown, tag: number): void;
  /** Like `failWith`, because a rank is lost. */
  failLost(rank: number, tag: number, reason: string, kind?: LossKind): void;
  /** Closes the group after the ranks of this process have finished; threads that serve requests end. */
  close(): void;
}

/** Opens the state of a group in a thread that received a connection. */
export const openGroupState = (connection: WorldConnection): GroupState => new ControlBlock(connection);

/** Memory and kernels of the ranks of one process. */
export interface RankMemory {
  /** Shared memory that contains the operands of all requests of this process. */
  readonly memory: WasmMemory;
  /** Module with the reductions (see `requiredExports`), or "none" for plain loops. */
  readonly kernels: WasmModule | "none";
}

export interface LocalRanksOptions extends RankMemory {
  readonly worldSize: number;
  /** Ranks of this process. */
  readonly ranks: readonly number[];
  /** Whether only companions can execute requests, because only companions reach the ranks of other processes. */
  readonly companionOnly: boolean;
  /** Time that a rank waits for a peer before the group fails. */
  readonly timeoutMilliseconds: number;
  /** Further settings that must be equal on all ranks of all processes. Ranks compare them when they join. */
  readonly facts?: Facts | undefined;
}

/** Settings that may become known only when all ranks have been found. */
export interface LocalPreference {
  /** Settings by which algorithms are chosen. Default: all defaults. */
  readonly preference?: Preference;
  /** Number of times that a rank polls before it sleeps. Default: 0, which suits ranks that share cores. */
  readonly spins?: number;
  /** Byte offset of exchange parts in the memory. Default: no exchanges. */
  readonly exchangeParts?: number | undefined;
  /** Express connections of the rank. Default: none. */
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

/** The ranks that are threads of one process: creates their control block and their connections to it. */
export class LocalRanks {
  /** State of the group, as the first local rank sees it. */
  readonly state: GroupState;
  readonly #options: LocalRanksOptions;
  readonly #control: SharedArrayBuffer;

  /** @throws ArgumentError as `checkRankMemory`, or if ranks are not in the world. */
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
   * Returns the argument of `joinWorld` for rank `rank`, and of `serveRequests` for its companion. It can be posted to
   * a worker.
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
