import { costOfRounds } from "../cost.ts";
import { segmented } from "../interleave.ts";
import { type Algorithm, input, modulo, output, scratch, type Step, withoutEmpty } from "../schedule.ts";
import { bruckRounds } from "./bruck-rounds.ts";

/**
 * All-reduce of a small vector: every rank gathers all operands in Bruck's rounds and sums the operands locally in rank
 * order. No other all-reduce in rank order has fewer rounds.
 *
 * Cost: ⌈log₂P⌉ rounds of one message, (P − 1) · S bytes per rank; P · S bytes of scratch memory. Source: see
 * `bruckAllGather`.
 * @example
 * ```ts
 * const { rounds } = gatherAllReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 3
 * ```
 */
export const gatherAllReduce: Algorithm = segmented({
  name: "gather-all-reduce",
  kind: "all-reduce",
  rankOrder: true,
  schedule: ({ rank, worldSize, elementCount }) => {
    const operand = (origin: number) => scratch(modulo(origin - rank, worldSize) * elementCount, elementCount);
    const rounds: Step[][] = [
      [
        {
          action: "copy",
          source: input(0, elementCount),
          target: worldSize === 1 ? output(0, elementCount) : operand(rank),
        },
      ],
    ];
    for (const [k, { to, from, first, blocks }] of bruckRounds(rank, worldSize).entries()) {
      (rounds[k] ??= []).push(
        { action: "send", peer: to, source: scratch(0, blocks * elementCount) },
        {
          action: "receive",
          combine: "replace",
          peer: from,
          target: scratch(first * elementCount, blocks * elementCount),
        },
      );
    }
    if (worldSize > 1) {
      const sources = Array.from({ length: worldSize }, (_, origin) => operand(origin));
      rounds.push([{ action: "fold", sources, target: output(0, elementCount) }]);
    }
    return {
      algorithm: "gather-all-reduce",
      scratchElements: worldSize > 1 ? worldSize * elementCount : 0,
      rounds: withoutEmpty(rounds),
    };
  },
  cost: (parameters) =>
    costOfRounds(
      parameters,
      bruckRounds(0, parameters.worldSize).map(({ blocks, first }) => ({
        sends: (rank) => [
          { peer: modulo(rank - first, parameters.worldSize), bytes: blocks * parameters.byteLength, summed: true },
        ],
      })),
    ),
});
