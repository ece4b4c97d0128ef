import { costOfRounds } from "../cost.ts";
import { segmented } from "../interleave.ts";
import { type Algorithm, input, output, type Step, withoutEmpty } from "../schedule.ts";
import { doublingBranch, positionsOf } from "./binomial-tree.ts";
import { splitLevels } from "./halves.ts";

/**
 * Reduce along a binomial tree, in the reverse order of a broadcast. In each round, half of the ranks that still have a
 * partial sum send it to the other half, which is nearer to the root. After the last round the root has the result.
 *
 * Cost: ⌈log₂P⌉ rounds; S bytes per rank; the root reads and sums ⌈log₂P⌉ · S bytes. Needs no scratch memory. Source:
 * Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005.
 * @example
 * ```ts
 * const { rounds } = binomialReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 3
 * ```
 */
export const binomialReduce: Algorithm = segmented({
  name: "binomial-reduce",
  kind: "reduce",
  rankOrder: false,
  schedule: ({ elementCount, ...parameters }) => {
    const { worldSize } = parameters;
    const { position, rankAt } = positionsOf(parameters);
    const whole = output(0, elementCount);
    const levels = splitLevels(worldSize);
    const rounds: Step[][] = Array.from({ length: levels + 1 }, () => []);
    let held = input(0, elementCount);
    for (let k = levels - 1; k >= 0; k--) {
      const { parent, child } = doublingBranch(position, worldSize, k);
      const steps = rounds[levels - 1 - k]!;
      if (parent !== undefined) steps.push({ action: "send", peer: rankAt(parent), source: held });
      if (child === undefined) continue;
      steps.push({ action: "receive", combine: "reduce", peer: rankAt(child), target: whole, own: held });
      held = whole;
    }
    if (position !== 0) rounds[levels]!.push({ action: "clear", target: whole });
    else if (levels === 0) rounds[0]!.push({ action: "copy", source: held, target: whole });
    return { algorithm: "binomial-reduce", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const { worldSize, byteLength: bytes } = parameters;
    return costOfRounds(
      parameters,
      Array.from({ length: splitLevels(worldSize) }, (_, k) => ({
        sends: (rank) => {
          const { position, rankAt } = positionsOf({ ...parameters, rank });
          const { parent } = doublingBranch(position, worldSize, splitLevels(worldSize) - 1 - k);
          return parent === undefined ? [] : [{ peer: rankAt(parent), bytes, summed: true }];
        },
      })),
    );
  },
});
