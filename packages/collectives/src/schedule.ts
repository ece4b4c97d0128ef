import type { CollectiveKind } from "@skein/tensor-core/backend";

/** Which of the request's memory a range lies in. `scratch` is working memory of the schedule's own size. */
export type Region = "input" | "output" | "scratch";

/** `count` elements from `offset`. */
export interface ElementRange {
  readonly region: Region;
  readonly offset: number;
  readonly count: number;
}

/**
 * One thing that a rank does.
 *
 * - `copy`, `clear`: within the rank.
 * - `fold`: within the rank; combine `sources`, in the order given, into `target`, which may be one of them.
 * - `send`: let `peer` have `source`. The range must not change until the peer has taken it; the executor sees to that.
 * - `receive`: take the peer's matching send. `replace` stores it in `target`; `reduce` stores its combination with
 *   `own`.
 *
 * Receives of one round that reduce into the same target are combined in the order of ranks, this rank's `own`
 * included: the sum is `((x₀ + x₁) + x₂) + …` whoever computes it and whatever arrived first.
 *
 * `returned` marks a detour that shared memory can save. A `reduce` that is `returned` is followed, in a later round,
 * by a `returned` send of the result to the same peer, into the very range which that peer sent. Where a transport
 * hands out the peer's own memory, the result is written there at once, and the send only gives the memory back.
 * Elsewhere it is an ordinary send.
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
 * What one rank does in one collective. Steps of a round belong together: first copies, clears and folds, then sends,
 * then receives. A round takes one message time when links are full duplex and each rank has one message each way. All
 * ranks of one collective have equally many rounds, and a message is sent and received in one and the same round.
 *
 * What a round receives must not go where the round sends from: memory that is lent comes home when the peer has done
 * the same round, and it would wait for us.
 */
export interface Schedule {
  readonly algorithm: string;
  readonly scratchElements: number;
  readonly rounds: readonly (readonly Step[])[];
}

/** What a schedule depends on. Never on data, addresses or arrival. */
export interface Place {
  readonly rank: number;
  readonly worldSize: number;
  /** `n` of the request table in `CollectiveRequest`. */
  readonly elementCount: number;
  readonly root?: number;
  readonly to?: number;
  readonly from?: number;
  /** Ranks by host, each rank once; two-level forms need it. Default: every rank on a host of its own. */
  readonly hosts?: readonly (readonly number[])[];
  /** Pieces that the vector is cut into, so that one travels while another is summed. Default: 1. */
  readonly segments?: number;
}

/** Messages of one kind of link. */
export interface Traffic {
  readonly messages: number;
  readonly bytes: number;
}

/** Work of a rank by where it is done. */
export interface Load {
  /** Between ranks of one host, of one rank. */
  readonly within: Traffic;
  /** Between hosts. Messages are those of one rank; bytes are those of one host, since its ranks share its link. */
  readonly across: Traffic;
  /** Bytes of messages that one rank reads for sums. */
  readonly reducedBytes: number;
}

/** What a schedule costs; the formulas of docs/algorithms.md. Of a rank, the busiest one. */
export interface ScheduleCost {
  /** Rounds in which messages travel. */
  readonly rounds: number;
  /** Messages that one rank sends. */
  readonly messages: number;
  /** Bytes that one rank sends. */
  readonly bytes: number;
  /** Bytes of messages that one rank reads for sums. */
  readonly reducedBytes: number;
  /** The most that a rank (or host) sends or receives in all. */
  readonly busiest: Load;
  /** What everybody waits for: the busiest rank's (or host's) sends or receives of each round, added over rounds. */
  readonly path: Load;
}

/** What a cost depends on: the place of all ranks alike, and S of docs/algorithms.md in bytes. */
export interface CostPlace extends Omit<Place, "rank" | "elementCount" | "to" | "from"> {
  readonly byteLength: number;
}

/** An algorithm: a pure function from a place to the schedule of its rank, with the facts by which it is chosen. */
export interface Algorithm {
  readonly name: string;
  readonly kind: CollectiveKind;
  /**
   * Whether every sum is `((x₀ + x₁) + x₂) + …` in the order of ranks, wherever an element lies, so that its bits do
   * not depend on sizes, segments or hosts. True where nothing is summed.
   */
  readonly rankOrder: boolean;
  /**
   * The most pieces (`Place.segments`) that are worth trying. Default: 1, which says that segments are not looked at.
   */
  readonly mostSegments?: number;
  readonly schedule: (place: Place) => Schedule;
  readonly cost: (place: CostPlace) => ScheduleCost;
}

export const input = (offset: number, count: number): ElementRange => ({ region: "input", offset, count });
export const output = (offset: number, count: number): ElementRange => ({ region: "output", offset, count });
export const scratch = (offset: number, count: number): ElementRange => ({ region: "scratch", offset, count });

/** Chunk `index` of `count` elements in `parts` nearly equal chunks: [⌊i·n/P⌋, ⌊(i+1)·n/P⌋). */
export const chunkOf = (count: number, parts: number, index: number): readonly [offset: number, count: number] => {
  const begin = Math.floor((index * count) / parts);
  return [begin, Math.floor(((index + 1) * count) / parts) - begin];
};

/** `value` modulo `size`, never negative. */
export const modulo = (value: number, size: number): number => ((value % size) + size) % size;

/** Elements that a step moves. */
const movedElements = (step: Step): number =>
  step.action === "send" || step.action === "copy" ? step.source.count : step.target.count;

/** Leave out steps that move nothing. Both ends of a message see the same count, so both leave it out. */
export const withoutEmpty = (rounds: readonly (readonly Step[])[]): Step[][] =>
  rounds.map((steps) => steps.filter((step) => movedElements(step) > 0));

/** Every rank on a host of its own: what hosts are where nobody says. */
export const separateHosts = (worldSize: number): number[][] => Array.from({ length: worldSize }, (_, rank) => [rank]);

/** Elements that this rank sends. */
export const sentElements = (schedule: Schedule): number =>
  schedule.rounds.reduce(
    (sum, steps) => steps.reduce((inner, step) => inner + (step.action === "send" ? step.source.count : 0), sum),
    0,
  );

/** Messages that this rank sends. */
export const sentMessages = (schedule: Schedule): number =>
  schedule.rounds.reduce((sum, steps) => sum + steps.filter((step) => step.action === "send").length, 0);
