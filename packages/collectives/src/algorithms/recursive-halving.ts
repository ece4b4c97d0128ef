import type { Message } from "../cost.ts";
import type { ElementRange, Step } from "../schedule.ts";
import { halvesOf, splitLevels, splitsOf } from "./halves.ts";

/** Chunks `from` to `to` − 1. */
export type Chunks = readonly [from: number, to: number];

/**
 * Rounds in which every rank ends with the sum of its own chunk: a group of ranks splits in two, each rank gives a rank
 * of the other part its sums of that part's chunks, and goes on with its own part. Odd groups are cut unevenly, and one
 * rank then takes two messages: no rank stands aside, whatever P is.
 *
 * @param operand where chunks of the operand lie.
 * @param sums where sums of chunks go; `isLast` of the one chunk that is left.
 */
export const halvingRounds = (
  rank: number,
  worldSize: number,
  operand: (chunks: Chunks) => ElementRange,
  sums: (chunks: Chunks, isLast: boolean) => ElementRange,
): Step[][] => {
  const rounds: Step[][] = Array.from({ length: splitLevels(worldSize) }, () => []);
  const splits = splitsOf(rank, worldSize);
  let summed = false;
  for (const [level, split] of splits.entries()) {
    const { own, other, partner, partners } = halvesOf(rank, split);
    const held = (chunks: Chunks): ElementRange => (summed ? sums(chunks, false) : operand(chunks));
    const target = sums(own, level === splits.length - 1);
    rounds[level]!.push(
      { action: "send", peer: partner, source: held(other) },
      ...partners.map((peer): Step => ({ action: "receive", combine: "reduce", peer, target, own: held(own) })),
    );
    summed ||= partners.length > 0;
  }
  return rounds;
};

/** What a rank sends in each of these rounds. @param bytes of one chunk. */
export const halvingMessages = (worldSize: number, bytes: number): { sends: (rank: number) => Message[] }[] =>
  Array.from({ length: splitLevels(worldSize) }, (_, level) => ({
    sends: (rank) => {
      const split = splitsOf(rank, worldSize)[level];
      if (split === undefined) return [];
      const { other, partner } = halvesOf(rank, split);
      return [{ peer: partner, bytes: (other[1] - other[0]) * bytes, summed: true }];
    },
  }));
