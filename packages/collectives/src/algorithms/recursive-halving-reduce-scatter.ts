import { costOfRounds, type Message } from "../cost.ts";
import { type Algorithm, type ElementRange, input, output, scratch, type Step, withoutEmpty } from "../schedule.ts";
import { halvesOf, splitLevels, splitsOf } from "./halves.ts";

type Chunks = readonly [from: number, to: number];

/**
 * Reduce-scatter by recursive halving: a group of ranks splits in two, each rank gives a rank of the other part its
 * sums of that part's chunks, and goes on with its own part. Odd groups are cut unevenly, and one rank then takes two
 * messages: no rank stands aside, whatever P is.
 *
 * Cost: ⌈log₂P⌉ rounds of one message, (P − 1) / P · S bytes per rank for an operand of S bytes; S / 2 bytes of scratch
 * memory.
 * Source: Thakur, Rabenseifner and Gropp, 2005, for P = 2^k; uneven halves instead of their extra ranks.
 */
export const recursiveHalvingReduceScatter: Algorithm = {
  name: "recursive-halving-reduce-scatter",
  kind: "reduce-scatter",
  rankOrder: false,
  schedule: ({ rank, worldSize, elementCount }) => {
    const rounds: Step[][] = Array.from({ length: Math.max(1, splitLevels(worldSize)) }, () => []);
    if (worldSize === 1)
      rounds[0]!.push({ action: "copy", source: input(0, elementCount), target: output(0, elementCount) });
    const splits = splitsOf(rank, worldSize);
    // The operand stays as it is. Sums are in scratch memory, which has room for the part that this rank goes on with.
    const scratchBegin = splits[0] === undefined ? 0 : halvesOf(rank, splits[0]).own[0];
    let summed = false;
    for (const [level, split] of splits.entries()) {
      const { own, other, partner, partners } = halvesOf(rank, split);
      const inScratch = ([from, to]: Chunks): ElementRange =>
        scratch((from - scratchBegin) * elementCount, (to - from) * elementCount);
      const held = ([from, to]: Chunks): ElementRange =>
        summed ? inScratch([from, to]) : input(from * elementCount, (to - from) * elementCount);
      const target = level === splits.length - 1 ? output(0, elementCount) : inScratch(own);
      rounds[level]!.push(
        { action: "send", peer: partner, source: held(other) },
        ...partners.map((peer): Step => ({ action: "receive", combine: "reduce", peer, target, own: held(own) })),
      );
      summed ||= partners.length > 0;
    }
    return {
      algorithm: "recursive-halving-reduce-scatter",
      scratchElements: worldSize > 2 ? Math.ceil(worldSize / 2) * elementCount : 0,
      rounds: withoutEmpty(rounds),
    };
  },
  cost: (place) => {
    const chunk = place.byteLength / place.worldSize;
    return costOfRounds(
      place,
      Array.from({ length: splitLevels(place.worldSize) }, (_, level) => ({
        sends: (rank): Message[] => {
          const split = splitsOf(rank, place.worldSize)[level];
          if (split === undefined) return [];
          const { other, partner } = halvesOf(rank, split);
          return [{ peer: partner, bytes: (other[1] - other[0]) * chunk, summed: true }];
        },
      })),
    );
  },
};
