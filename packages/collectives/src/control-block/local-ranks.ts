import { ArgumentError } from "@skein/tensor-core";
import type { WasmMemory, WasmModule } from "@skein/tensor-core/backend";
import type { CollectiveError, LossKind } from "../errors.ts";
import type { Facts } from "../facts.ts";
import { checkKernels } from "../wasm-arithmetic.ts";
import { ControlBlock } from "./control-block.ts";
import { controlBytes } from "./layout.ts";
import type { ExpressEnd, Preference, WorldConnection } from "./world-connection.ts";

/**
 * What the threads of a process know together of their group: whether it failed, and of what. Any of them may hold one.
 */
export interface GroupState {
  readonly closed: boolean;
  /** The first failure, as this thread's rank sees it. */
  failure(): CollectiveError | undefined;
  /** What the collective of a tag is called in errors; tag 0 is none. */
  nameOf(tag: number): string;
  /** Make the group unusable for all ranks of this process, and wake all who wait. The first failure stands. */
  failWith(error: unknown, tag: number): void;
  /** The same, because a rank is gone. */
  failLost(rank: number, tag: number, reason: string, kind?: LossKind): void;
  /** The ranks of this process have finished: those who serve them end. */
  close(): void;
}

/** Open the state of a group in a thread that was posted a connection. */
export const openGroupState = (connection: WorldConnection): GroupState => new ControlBlock(connection);

/** What the ranks of one process compute with. */
export interface RankMemory {
  /** The shared memory in which all regions of all requests of this process lie. */
  readonly memory: WasmMemory;
  /** Module with the reductions (see `requiredExports`); "none" says that plain loops will do. */
  readonly kernels: WasmModule | "none";
}

export interface LocalRanksOptions extends RankMemory {
  readonly worldSize: number;
  /** Those of this process. */
  readonly ranks: readonly number[];
  /** Only companions can execute requests, since they alone reach the ranks of other processes. */
  readonly companionOnly: boolean;
  /** How long a rank waits for a peer before the group fails. */
  readonly timeoutMilliseconds: number;
  /** What else must be the same on all ranks of all processes; they compare it when they join. */
  readonly facts?: Facts | undefined;
}

/** What may be known only when all ranks have been found. */
export interface LocalPreference {
  /** What algorithms are chosen by. Default: nothing is known. */
  readonly preference?: Preference;
  /** How often a rank looks for what it waits for before it sleeps. Default: 0, which suits ranks that share cores. */
  readonly spins?: number;
  /** Default: none. */
  readonly exchangeParts?: number | undefined;
  /** Default: none. */
  readonly express?: readonly ExpressEnd[] | undefined;
}

/** @throws ArgumentError when the memory is not shared or the module lacks a reduction. */
export const checkRankMemory = ({ memory, kernels }: RankMemory): void => {
  if (!(memory.buffer instanceof SharedArrayBuffer))
    throw new ArgumentError("ranks of a process need a shared WebAssembly.Memory; create it with { shared: true }");
  if (kernels !== "none") checkKernels(kernels);
};

/** The ranks that are threads of one process: makes their control block, and connections to it. */
export class LocalRanks {
  /** In the name of the first of them. */
  readonly state: GroupState;
  readonly #options: LocalRanksOptions;
  readonly #control: SharedArrayBuffer;

  /** @throws ArgumentError as `checkRankMemory`, or for ranks that are not of the world. */
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

  /** What rank `rank` passes to `joinWorld`, and its companion to `serveRequests`; may be posted to a worker. */
  connection(
    rank: number,
    { preference = {}, spins = 0, exchangeParts, express }: LocalPreference = {},
  ): WorldConnection {
    const { worldSize, ranks, memory, kernels, companionOnly, timeoutMilliseconds, facts } = this.#options;
    if (!ranks.includes(rank))
      throw new ArgumentError(`rank ${rank} is not of this process, which holds ${ranks.join(", ")}`);
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
