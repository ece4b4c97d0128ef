import { costOfRounds, type Message } from "../cost.ts";
import { type Algorithm, type ElementRange, input, output, type Step, withoutEmpty } from "../schedule.ts";
import { halvesOf, splitLevels, splitsOf } from "./halves.ts";

/**
 * All-gather by recursive doubling, the reverse of `recursiveHalvingReduceScatter`. Groups merge in pairs, and each
 * rank sends the data of its group to a rank of the other group. If the merged group has an odd number of ranks, one
 * rank sends two messages, so that every rank has the result in ⌈log₂P⌉ rounds.
 *
 * Cost: ⌈log₂P⌉ rounds. Every rank receives (P − 1) / P · S bytes for a result of S bytes. Every rank sends the same
 * number of bytes if P is a power of two, otherwise at most 1.5 times as many. Source: Thakur, Rabenseifner and Gropp,
 * 2005, for P = 2^k.
 * @example
 * ```ts
 * const { rounds } = recursiveDoublingAllGather.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 2
 * ```
 */
export const recursiveDoublingAllGather: Algorithm = {
  name: "recursive-doubling-all-gather",
  kind: "all-gather",
  rankOrder: true,
  schedule: ({ rank, worldSize, elementCount }) => {
    const chunks = ([from, to]: readonly [number, number]): ElementRange =>
      output(from * elementCount, (to - from) * elementCount);
    const levels = splitLevels(worldSize);
    const rounds: Step[][] = Array.from({ length: Math.max(1, levels) }, () => []);
    rounds[0]!.push({ action: "copy", source: input(0, elementCount), target: chunks([rank, rank + 1]) });
    for (const [level, split] of splitsOf(rank, worldSize).entries()) {
      const { own, other, partner, partners } = halvesOf(rank, split);
      rounds[levels - 1 - level]!.push(
        ...partners.map((peer): Step => ({ action: "send", peer, source: chunks(own) })),
        {
          action: "receive",
          combine: "replace",
          peer: partner,
          target: chunks(other),
        },
      );
    }
    return { algorithm: "recursive-doubling-all-gather", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const chunk = parameters.byteLength / parameters.worldSize;
    const levels = splitLevels(parameters.worldSize);
    return costOfRounds(
      parameters,
      Array.from({ length: levels }, (_, round) => ({
        sends: (rank): Message[] => {
          const split = splitsOf(rank, parameters.worldSize)[levels - 1 - round];
          if (split === undefined) return [];
          const { own, partners } = halvesOf(rank, split);
          return partners.map((peer) => ({ peer, bytes: (own[1] - own[0]) * chunk }));
        },
      })),
    );
  },
};
