import type { CollectiveKind } from "@skein/tensor-core";

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
 * - `send`: let `peer` have `source`. The range must not change until the peer has taken it; the executor sees to that.
 * - `receive`: take the peer's matching send. `replace` stores it in `target`; `reduce` stores its combination with `own`.
 *
 * Receives of one round that reduce into the same target are combined in the order of ranks, this rank's `own` included: the
 * sum is `((x₀ + x₁) + x₂) + …` whoever computes it and whatever arrived first.
 *
 * `returned` marks a detour that shared memory can save. A `reduce` that is `returned` is followed, in a later round, by a
 * `returned` send of the result to the same peer, into the very range which that peer sent. Where a transport hands out the
 * peer's own memory, the result is written there at once, and the send only gives the memory back. Elsewhere it is an ordinary send.
 */
export type Step =
  | { readonly action: "copy"; readonly source: ElementRange; readonly target: ElementRange }
  | { readonly action: "clear"; readonly target: ElementRange }
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
 * What one rank does in one collective. Steps of a round belong together: first copies and clears, then sends, then receives. A
 * round takes one message time when links are full duplex and each rank has one message each way.
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
}

/** An algorithm: a pure function from a place to the schedule of its rank. */
export interface Algorithm {
  readonly name: string;
  readonly kind: CollectiveKind;
  readonly schedule: (place: Place) => Schedule;
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

/** Leave out steps that move nothing. Both ends of a message see the same count, so both leave it out. */
export const withoutEmpty = (rounds: readonly (readonly Step[])[]): Step[][] =>
  rounds.map((steps) =>
    steps.filter((step) => (step.action === "send" || step.action === "copy" ? step.source.count : step.target.count) > 0),
  );

/** Elements that this rank sends. */
export const sentElements = (schedule: Schedule): number =>
  schedule.rounds.reduce((sum, steps) => steps.reduce((inner, step) => inner + (step.action === "send" ? step.source.count : 0), sum), 0);

/** Messages that this rank sends. */
export const sentMessages = (schedule: Schedule): number =>
  schedule.rounds.reduce((sum, steps) => sum + steps.filter((step) => step.action === "send").length, 0);
