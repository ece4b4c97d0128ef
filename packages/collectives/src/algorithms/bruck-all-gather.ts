import { costOfRounds } from "../cost.ts";
import { type Algorithm, input, modulo, output, scratch, type Step, withoutEmpty } from "../schedule.ts";
import { bruckRounds } from "./bruck-rounds.ts";

/**
 * All-gather by Bruck: each rank starts with its own operand, doubles the number of collected operands in each round,
 * and finally rotates the operands into rank order.
 *
 * Cost: ⌈log₂P⌉ rounds of one message for every P, (P − 1) / P · S bytes per rank; S bytes of scratch memory and a copy
 * of S bytes. Source: Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing
 * systems", 1997.
 * @example
 * ```ts
 * const { rounds } = bruckAllGather.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 3
 * ```
 */
export const bruckAllGather: Algorithm = {
  name: "bruck-all-gather",
  kind: "all-gather",
  rankOrder: true,
  schedule: ({ rank, worldSize, elementCount }) => {
    const operand = input(0, elementCount);
    const rounds: Step[][] = [
      [
        {
          action: "copy",
          source: operand,
          target: worldSize === 1 ? output(0, elementCount) : scratch(0, elementCount),
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
      const beforeWrap = (worldSize - rank) * elementCount;
      rounds.push([
        { action: "copy", source: scratch(0, beforeWrap), target: output(rank * elementCount, beforeWrap) },
        { action: "copy", source: scratch(beforeWrap, rank * elementCount), target: output(0, rank * elementCount) },
      ]);
    }
    return {
      algorithm: "bruck-all-gather",
      scratchElements: worldSize > 1 ? worldSize * elementCount : 0,
      rounds: withoutEmpty(rounds),
    };
  },
  cost: (parameters) =>
    costOfRounds(
      parameters,
      bruckRounds(0, parameters.worldSize).map(({ blocks, first }) => ({
        sends: (rank) => [
          {
            peer: modulo(rank - first, parameters.worldSize),
            bytes: (blocks * parameters.byteLength) / parameters.worldSize,
          },
        ],
      })),
    ),
};
