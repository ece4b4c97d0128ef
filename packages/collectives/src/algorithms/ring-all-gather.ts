import { costOfRounds } from "../cost.ts";
import { type Algorithm, type ElementRange, input, modulo, output, type Step, withoutEmpty } from "../schedule.ts";

/**
 * All-gather by one pass around a ring: each rank forwards the operand that it received in the previous round.
 *
 * Cost: P − 1 rounds of one message, (P − 1) / P · S bytes per rank for a result of S bytes. Source: see
 * `ringAllReduce`.
 * @example
 * ```ts
 * const { rounds } = ringAllGather.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 3
 * ```
 */
export const ringAllGather: Algorithm = {
  name: "ring-all-gather",
  kind: "all-gather",
  rankOrder: true,
  schedule: ({ rank, worldSize, elementCount }) => {
    const part = (index: number): ElementRange => output(modulo(index, worldSize) * elementCount, elementCount);
    const rounds: Step[][] = [[{ action: "copy", source: input(0, elementCount), target: part(rank) }]];
    for (let k = 0; k < worldSize - 1; k++) {
      (rounds[k] ??= []).push(
        { action: "send", peer: modulo(rank + 1, worldSize), source: part(rank - k) },
        { action: "receive", combine: "replace", peer: modulo(rank - 1, worldSize), target: part(rank - 1 - k) },
      );
    }
    return { algorithm: "ring-all-gather", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const { worldSize, byteLength } = parameters;
    return costOfRounds(parameters, [
      { times: worldSize - 1, sends: (rank) => [{ peer: modulo(rank + 1, worldSize), bytes: byteLength / worldSize }] },
    ]);
  },
};
