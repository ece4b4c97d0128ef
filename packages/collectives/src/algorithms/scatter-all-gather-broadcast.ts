import { costOfRounds, type Message } from "../cost.ts";
import { segmented } from "../interleave.ts";
import {
  type Algorithm,
  chunkOf,
  type ElementRange,
  input,
  modulo,
  output,
  type Step,
  withoutEmpty,
} from "../schedule.ts";
import { halvingBranch, positionsOf } from "./binomial-tree.ts";
import { splitLevels } from "./halves.ts";

/**
 * Broadcast of a large vector: the root scatters P chunks along a binomial tree, then all ranks all-gather the chunks
 * along a ring.
 *
 * Cost: ⌈log₂P⌉ + P − 1 rounds; the root sends 2(P − 1) / P · S bytes, for any P. Source: Barnett et al.,
 * "Interprocessor collective communication library", 1994; Thakur et al., 2005.
 * @example
 * ```ts
 * const { rounds } = scatterAllGatherBroadcast.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 5
 * ```
 */
export const scatterAllGatherBroadcast: Algorithm = segmented({
  name: "scatter-all-gather-broadcast",
  kind: "broadcast",
  rankOrder: true,
  schedule: ({ elementCount, ...parameters }) => {
    const { worldSize } = parameters;
    const { position, rankAt } = positionsOf(parameters);
    const chunks = (first: number, count: number): ElementRange => {
      const offset = chunkOf(elementCount, worldSize, first)[0];
      return output(offset, Math.floor(((first + count) * elementCount) / worldSize) - offset);
    };
    const rounds: Step[][] = [
      position === 0 ? [{ action: "copy", source: input(0, elementCount), target: output(0, elementCount) }] : [],
    ];
    for (let k = 0; k < splitLevels(worldSize); k++) {
      const { parent, child, first, count } = halvingBranch(position, worldSize, k);
      const steps = (rounds[k] ??= []);
      if (child !== undefined) steps.push({ action: "send", peer: rankAt(child), source: chunks(first, count) });
      if (parent !== undefined)
        steps.push({ action: "receive", combine: "replace", peer: rankAt(parent), target: chunks(first, count) });
    }
    for (let k = 0; k < worldSize - 1; k++)
      rounds.push([
        { action: "send", peer: rankAt(position + 1), source: chunks(modulo(position - k, worldSize), 1) },
        {
          action: "receive",
          combine: "replace",
          peer: rankAt(position - 1),
          target: chunks(modulo(position - 1 - k, worldSize), 1),
        },
      ]);
    return { algorithm: "scatter-all-gather-broadcast", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const { worldSize, byteLength } = parameters;
    const chunk = byteLength / worldSize;
    return costOfRounds(parameters, [
      ...Array.from({ length: splitLevels(worldSize) }, (_, k) => ({
        sends: (rank: number): Message[] => {
          const { position, rankAt } = positionsOf({ ...parameters, rank });
          const { child, count } = halvingBranch(position, worldSize, k);
          return child === undefined ? [] : [{ peer: rankAt(child), bytes: count * chunk }];
        },
      })),
      { times: worldSize - 1, sends: (rank) => [{ peer: modulo(rank + 1, worldSize), bytes: chunk }] },
    ]);
  },
});
