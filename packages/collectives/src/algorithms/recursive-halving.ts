import type { Message } from "../cost.ts";
import type { ElementRange, Step } from "../schedule.ts";
import { halvesOf, splitLevels, splitsOf } from "./halves.ts";

/** Range of chunks `from` to `to` − 1. */
export type Chunks = readonly [from: number, to: number];

/**
 * Returns the rounds of a reduce-scatter by recursive halving. After the rounds, every rank has the sum of its own
 * chunk. A group of ranks splits into two parts. Each rank sends the chunks of the other part to a rank of the other
 * part, and continues with the chunks of its own part. Odd groups are split unevenly, and one rank then receives two
 * messages, so every rank participates for any P.
 *
 * @param operand returns the memory for a range of operand chunks.
 * @param sums returns the memory for the sums of a range of chunks. `isLast` is true in the last round, when the range
 * is the rank's own chunk.
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

/**
 * Returns the messages that a rank sends in each round of `halvingRounds`.
 *
 * @param bytes size of one chunk.
 */
export const halvingMessages = (worldSize: number, bytes: number): { sends: (rank: number) => Message[] }[] =>
  Array.from({ length: splitLevels(worldSize) }, (_, level) => ({
    sends: (rank) => {
      const split = splitsOf(rank, worldSize)[level];
      if (split === undefined) return [];
      const { other, partner } = halvesOf(rank, split);
      return [{ peer: partner, bytes: (other[1] - other[0]) * bytes, summed: true }];
    },
  }));
