import type { CollectiveKind } from "@skein/tensor-core/backend";

/** Memory region that a schedule reads or writes. `scratch` is working memory; the schedule defines its size. */
export type Region = "input" | "output" | "scratch";

/** Range of `count` elements, beginning at element `offset` of the region. */
export interface ElementRange {
  readonly region: Region;
  readonly offset: number;
  readonly count: number;
}

/**
 * One action of a rank.
 *
 * - `copy`, `clear`: local.
 * - `fold`: local; combines `sources`, in the given order, into `target`, which may be one of the sources.
 * - `send`: sends `source` to `peer`. The executor ensures that the range does not change until the peer has received
 *   it.
 * - `receive`: receives the peer's matching send. `replace` stores the message in `target`; `reduce` stores the
 *   combination of the message and `own`.
 *
 * Receives of one round that reduce into the same target are combined in rank order, including this rank's `own`: the
 * sum is `((x₀ + x₁) + x₂) + …` on every rank, regardless of the order of arrival.
 *
 * `returned` marks messages that need not be sent in shared memory. After a `reduce` with `returned`, a `send` with
 * `returned` in a later round sends the result to the same peer, into the range that the peer sent. If a transport can
 * access the peer's memory, `reduce` writes the result directly to the peer's memory, and `send` only releases this
 * memory. Otherwise `send` is an ordinary send.
 */
export type Step =
  | { readonly action: "copy"; readonly source: ElementRange; readonly target: ElementRange }
  | { readonly action: "clear"; readonly target: ElementRange }
  | { readonly action: "fold"; readonly sources: readonly ElementRange[]; readonly target: ElementRange }
  | { readonly action: "send"; readonly peer: number; readonly source: ElementRange; readonly returned?: boolean }
  | {
      readonly action: "receive";
      readonly combine: "replace";
      readonly peer: number;
      readonly target: ElementRange;
      readonly returned?: boolean;
    }
  | {
      readonly action: "receive";
      readonly combine: "reduce";
      readonly peer: number;
      readonly target: ElementRange;
      readonly own: ElementRange;
      readonly returned?: boolean;
    };

/**
 * Steps of one rank in one collective. A round runs its copies, clears and folds first, then its sends, then its
 * receives. A round takes the time of one message if links are full duplex and each rank has one message in each
 * direction. All ranks of a collective have the same number of rounds, and a message is sent and received in the same
 * round.
 *
 * A round must not receive into memory that is sent in the same round: a peer releases borrowed memory only after it
 * has executed the same round, so both ranks would wait for each other.
 */
export interface CollectiveSchedule {
  readonly algorithm: string;
  readonly scratchElements: number;
  readonly rounds: readonly (readonly Step[])[];
}

/** Parameters of a schedule. Schedules never depend on data, addresses or the order of message arrival. */
export interface ScheduleParameters {
  readonly rank: number;
  readonly worldSize: number;
  /** Number of elements: `n` in the table of `CollectiveRequest`. */
  readonly elementCount: number;
  readonly root?: number;
  readonly to?: number;
  readonly from?: number;
  /** Ranks by host, each rank one time. Used by two-level algorithms. Default: every rank on a separate host. */
  readonly hosts?: readonly (readonly number[])[];
  /** Number of segments of the vector. One segment is sent while another segment is summed. Default: 1. */
  readonly segments?: number;
}

/** Number of messages and bytes over one class of links. */
export interface Traffic {
  readonly messages: number;
  readonly bytes: number;
}

/** Work of the busiest rank or host, by class of links. */
export interface Load {
  /** Messages and bytes that one rank transfers over links within its host. */
  readonly within: Traffic;
  /**
   * Messages that one rank transfers, and bytes that one host transfers, over links between hosts. The ranks of a host
   * share one link.
   */
  readonly across: Traffic;
  /** Bytes of messages that one rank reads as operands of sums. */
  readonly reducedBytes: number;
}

/** Cost of a schedule by the formulas of docs/algorithms.md. Values per rank are maxima over ranks. */
export interface ScheduleCost {
  /** Number of rounds in which messages are sent. */
  readonly rounds: number;
  /** Number of messages that one rank sends. */
  readonly messages: number;
  /** Number of bytes that one rank sends. */
  readonly bytes: number;
  /** Bytes of messages that one rank reads as operands of sums. */
  readonly reducedBytes: number;
  /**
   * Total load of the busiest rank (or host) in messages and bytes: the larger of its sent total and its received
   * total.
   */
  readonly busiest: Load;
  /**
   * Load of the critical path: the messages and bytes that the busiest rank (or host) of each round sends or receives,
   * summed over rounds.
   */
  readonly path: Load;
}

/**
 * Parameters of a cost formula: the schedule parameters that are equal on all ranks, and S of docs/algorithms.md in
 * bytes.
 */
export interface CostParameters extends Omit<ScheduleParameters, "rank" | "elementCount" | "to" | "from"> {
  readonly byteLength: number;
}

/**
 * An algorithm: a pure function from parameters to the schedule of a rank, with the properties used to choose an
 * algorithm.
 */
export interface Algorithm {
  readonly name: string;
  readonly kind: CollectiveKind;
  /**
   * Whether every sum is `((x₀ + x₁) + x₂) + …` in rank order, at every position of the vector. The bits of such sums
   * do not depend on sizes, segments or hosts. True if the algorithm computes no sums.
   */
  readonly rankOrder: boolean;
  /**
   * Maximum useful number of segments (`ScheduleParameters.segments`). Default: 1, which means that the algorithm
   * ignores segments.
   */
  readonly maxSegments?: number;
  readonly schedule: (parameters: ScheduleParameters) => CollectiveSchedule;
  readonly cost: (parameters: CostParameters) => ScheduleCost;
}

export const input = (offset: number, count: number): ElementRange => ({ region: "input", offset, count });
export const output = (offset: number, count: number): ElementRange => ({ region: "output", offset, count });
export const scratch = (offset: number, count: number): ElementRange => ({ region: "scratch", offset, count });

/**
 * Returns offset and size of chunk `index` if `count` elements are split into `parts` nearly equal chunks: [⌊i·n/P⌋,
 * ⌊(i+1)·n/P⌋).
 */
export const chunkOf = (count: number, parts: number, index: number): readonly [offset: number, count: number] => {
  const begin = Math.floor((index * count) / parts);
  return [begin, Math.floor(((index + 1) * count) / parts) - begin];
};

/** Returns `value` modulo `size`, never negative. */
export const modulo = (value: number, size: number): number => ((value % size) + size) % size;

/** Returns the number of elements that a step moves. */
const movedElements = (step: Step): number =>
  step.action === "send" || step.action === "copy" ? step.source.count : step.target.count;

/**
 * Removes steps that move no elements. The sender and the receiver of a message have the same count, so both remove the
 * message.
 */
export const withoutEmpty = (rounds: readonly (readonly Step[])[]): Step[][] =>
  rounds.map((steps) => steps.filter((step) => movedElements(step) > 0));

/** Returns the default hosts: every rank on a separate host. */
export const separateHosts = (worldSize: number): number[][] => Array.from({ length: worldSize }, (_, rank) => [rank]);

/** Returns the number of elements that this rank sends. */
export const sentElements = (schedule: CollectiveSchedule): number =>
  schedule.rounds.reduce(
    (sum, steps) => steps.reduce((inner, step) => inner + (step.action === "send" ? step.source.count : 0), sum),
    0,
  );

/** Returns the number of messages that this rank sends. */
export const sentMessages = (schedule: CollectiveSchedule): number =>
  schedule.rounds.reduce((sum, steps) => sum + steps.filter((step) => step.action === "send").length, 0);
