import { costOfRounds } from "../cost.ts";
import { type Algorithm, type ElementRange, input, modulo, output, type Step, withoutEmpty } from "../schedule.ts";

/**
 * All-to-all in rounds: in round k each rank sends to rank + k and receives from rank − k, so that no rank receives two
 * messages at once.
 *
 * Cost: P − 1 rounds of one message, (P − 1) / P · S bytes per rank for an operand of S bytes. Source: Thakur,
 * Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005.
 * @example
 * ```ts
 * const { rounds } = pairwiseAllToAll.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 3
 * ```
 */
export const pairwiseAllToAll: Algorithm = {
  name: "pairwise-all-to-all",
  kind: "all-to-all",
  rankOrder: true,
  schedule: ({ rank, worldSize, elementCount }) => {
    const chunk = (of: (offset: number, count: number) => ElementRange, index: number): ElementRange =>
      of(index * elementCount, elementCount);
    const rounds: Step[][] = [[{ action: "copy", source: chunk(input, rank), target: chunk(output, rank) }]];
    for (let k = 1; k < worldSize; k++) {
      const to = modulo(rank + k, worldSize);
      const from = modulo(rank - k, worldSize);
      (rounds[k - 1] ??= []).push(
        { action: "send", peer: to, source: chunk(input, to) },
        { action: "receive", combine: "replace", peer: from, target: chunk(output, from) },
      );
    }
    return { algorithm: "pairwise-all-to-all", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const { worldSize, byteLength } = parameters;
    return costOfRounds(
      parameters,
      Array.from({ length: worldSize - 1 }, (_, k) => ({
        sends: (rank) => [{ peer: modulo(rank + k + 1, worldSize), bytes: byteLength / worldSize }],
      })),
    );
  },
};
