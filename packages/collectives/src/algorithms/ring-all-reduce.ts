import { costOfRounds } from "../cost.ts";
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

/**
 * All-reduce by two passes around a ring of P chunks: a reduce-scatter, then an all-gather.
 *
 * Cost: 2(P − 1) rounds of one message, 2(P − 1) / P · S bytes per rank for S bytes: bandwidth-optimal, latency grows
 * with P. Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
 * @example
 * ```ts
 * const { rounds } = ringAllReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 6
 * ```
 */
export const ringAllReduce: Algorithm = segmented({
  name: "ring-all-reduce",
  kind: "all-reduce",
  rankOrder: false,
  schedule: ({ rank, worldSize, elementCount }) => {
    const chunk = (index: number): ElementRange =>
      output(...chunkOf(elementCount, worldSize, modulo(index, worldSize)));
    const next = modulo(rank + 1, worldSize);
    const previous = modulo(rank - 1, worldSize);
    const rounds: Step[][] = [[{ action: "copy", source: input(0, elementCount), target: output(0, elementCount) }]];
    for (let k = 0; k < worldSize - 1; k++) {
      const target = chunk(rank - k - 1);
      (rounds[k] ??= []).push(
        { action: "send", peer: next, source: chunk(rank - k) },
        { action: "receive", combine: "reduce", peer: previous, target, own: target },
      );
    }
    for (let k = 0; k < worldSize - 1; k++) {
      rounds.push([
        { action: "send", peer: next, source: chunk(rank + 1 - k) },
        { action: "receive", combine: "replace", peer: previous, target: chunk(rank - k) },
      ]);
    }
    return { algorithm: "ring-all-reduce", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const { worldSize, byteLength } = parameters;
    const round = (summed: boolean) => ({
      times: worldSize - 1,
      sends: (rank: number) => [{ peer: modulo(rank + 1, worldSize), bytes: byteLength / worldSize, summed }],
    });
    return costOfRounds(parameters, [round(true), round(false)]);
  },
});
