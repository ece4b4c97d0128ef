import { costOfRounds } from "../cost.ts";
import { type Algorithm, input, modulo, output, type Step } from "../schedule.ts";

/**
 * Barrier: in round k each rank signals rank + 2^k and waits for rank − 2^k. After the last round every rank knows that
 * all ranks have arrived.
 *
 * Cost: ⌈log₂P⌉ rounds of one empty message. Source: Hensgen, Finkel and Manber, "Two algorithms for barrier
 * synchronization", 1988.
 * @example
 * ```ts
 * const { rounds } = disseminationBarrier.schedule({ rank: 0, worldSize: 4, elementCount: 0 });
 * console.log(rounds.length); // 2
 * ```
 */
export const disseminationBarrier: Algorithm = {
  name: "dissemination-barrier",
  kind: "barrier",
  rankOrder: true,
  schedule: ({ rank, worldSize }) => {
    const rounds: Step[][] = worldSize === 1 ? [[]] : [];
    for (let distance = 1; distance < worldSize; distance *= 2) {
      rounds.push([
        { action: "send", peer: modulo(rank + distance, worldSize), source: input(0, 0) },
        { action: "receive", combine: "replace", peer: modulo(rank - distance, worldSize), target: output(0, 0) },
      ]);
    }
    return { algorithm: "dissemination-barrier", scratchElements: 0, rounds };
  },
  cost: (parameters) =>
    costOfRounds(
      parameters,
      Array.from({ length: Math.ceil(Math.log2(parameters.worldSize)) }, (_, k) => ({
        sends: (rank) => [{ peer: modulo(rank + 2 ** k, parameters.worldSize), bytes: 0 }],
      })),
    ),
};
