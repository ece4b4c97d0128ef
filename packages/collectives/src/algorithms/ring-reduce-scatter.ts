import { costOfRounds } from "../cost.ts";
import {
  type Algorithm,
  type ElementRange,
  input,
  modulo,
  output,
  scratch,
  type Step,
  withoutEmpty,
} from "../schedule.ts";

/**
 * Reduce-scatter by one pass around a ring, after which rank r has chunk r. The operand does not change: partial sums
 * use two scratch chunks.
 *
 * Cost: P − 1 rounds of one message, (P − 1) / P · S bytes per rank for an operand of S bytes. Source: see
 * `ringAllReduce`.
 * @example
 * ```ts
 * const { rounds } = ringReduceScatter.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 3
 * ```
 */
export const ringReduceScatter: Algorithm = {
  name: "ring-reduce-scatter",
  kind: "reduce-scatter",
  rankOrder: false,
  schedule: ({ rank, worldSize, elementCount }) => {
    const operand = (index: number): ElementRange => input(modulo(index, worldSize) * elementCount, elementCount);
    const partial = (round: number): ElementRange =>
      round === worldSize - 2 ? output(0, elementCount) : scratch((round % 2) * elementCount, elementCount);
    const rounds: Step[][] = [];
    if (worldSize === 1) rounds.push([{ action: "copy", source: operand(0), target: output(0, elementCount) }]);
    for (let k = 0; k < worldSize - 1; k++) {
      rounds.push([
        { action: "send", peer: modulo(rank + 1, worldSize), source: k === 0 ? operand(rank - 1) : partial(k - 1) },
        {
          action: "receive",
          combine: "reduce",
          peer: modulo(rank - 1, worldSize),
          target: partial(k),
          own: operand(rank - 2 - k),
        },
      ]);
    }
    return {
      algorithm: "ring-reduce-scatter",
      scratchElements: worldSize > 2 ? 2 * elementCount : 0,
      rounds: withoutEmpty(rounds),
    };
  },
  cost: (parameters) => {
    const { worldSize, byteLength } = parameters;
    return costOfRounds(parameters, [
      {
        times: worldSize - 1,
        sends: (rank) => [{ peer: modulo(rank + 1, worldSize), bytes: byteLength / worldSize, summed: true }],
      },
    ]);
  },
};
