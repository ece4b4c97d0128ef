import { costOfRounds } from "../cost.ts";
import { segmented } from "../interleave.ts";
import { type Algorithm, input, output, type Step, withoutEmpty } from "../schedule.ts";
import { doublingBranch, positionsOf } from "./binomial-tree.ts";
import { splitLevels } from "./halves.ts";

/**
 * Broadcast along a binomial tree: in round k the 2^k ranks that have the value send it to 2^k other ranks.
 *
 * Cost: ⌈log₂P⌉ rounds; ⌈log₂P⌉ · S bytes sent by the root, the busiest rank. Source: Thakur, Rabenseifner and Gropp,
 * "Optimization of collective communication operations in MPICH", 2005.
 * @example
 * ```ts
 * const { rounds } = binomialBroadcast.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 2
 * ```
 */
export const binomialBroadcast: Algorithm = segmented({
  name: "binomial-broadcast",
  kind: "broadcast",
  rankOrder: true,
  schedule: ({ elementCount, ...parameters }) => {
    const { worldSize } = parameters;
    const { position, rankAt } = positionsOf(parameters);
    const whole = output(0, elementCount);
    const rounds: Step[][] = [
      position === 0 ? [{ action: "copy", source: input(0, elementCount), target: whole }] : [],
    ];
    for (let k = 0; k < splitLevels(worldSize); k++) {
      const { parent, child } = doublingBranch(position, worldSize, k);
      const steps = (rounds[k] ??= []);
      if (child !== undefined) steps.push({ action: "send", peer: rankAt(child), source: whole });
      if (parent !== undefined)
        steps.push({ action: "receive", combine: "replace", peer: rankAt(parent), target: whole });
    }
    return { algorithm: "binomial-broadcast", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const { worldSize, byteLength: bytes } = parameters;
    return costOfRounds(
      parameters,
      Array.from({ length: splitLevels(worldSize) }, (_, k) => ({
        sends: (rank) => {
          const { position, rankAt } = positionsOf({ ...parameters, rank });
          const { child } = doublingBranch(position, worldSize, k);
          return child === undefined ? [] : [{ peer: rankAt(child), bytes }];
        },
      })),
    );
  },
});
