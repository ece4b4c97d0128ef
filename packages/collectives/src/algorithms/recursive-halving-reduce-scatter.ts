import { costOfRounds } from "../cost.ts";
import { type Algorithm, input, output, scratch, withoutEmpty } from "../schedule.ts";
import { halvesOf, splitsOf } from "./halves.ts";
import { halvingMessages, halvingRounds } from "./recursive-halving.ts";

/**
 * Reduce-scatter by recursive halving, for any P (`halvingRounds`).
 *
 * Cost: ⌈log₂P⌉ rounds of one message, (P − 1) / P · S bytes per rank for an operand of S bytes; S / 2 bytes of scratch
 * memory. Source: Thakur, Rabenseifner and Gropp, 2005, for P = 2^k; in contrast to this source, groups of any size are
 * split, into uneven halves if necessary.
 * @example
 * ```ts
 * const { rounds } = recursiveHalvingReduceScatter.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 2
 * ```
 */
export const recursiveHalvingReduceScatter: Algorithm = {
  name: "recursive-halving-reduce-scatter",
  kind: "reduce-scatter",
  rankOrder: false,
  schedule: ({ rank, worldSize, elementCount }) => {
    // The operand must not change. Sums are stored in scratch memory, which has space for the larger half of the
    // chunks.
    const [widest] = splitsOf(rank, worldSize);
    const scratchBegin = widest === undefined ? 0 : halvesOf(rank, widest).own[0];
    const rounds =
      worldSize === 1
        ? [[{ action: "copy", source: input(0, elementCount), target: output(0, elementCount) } as const]]
        : halvingRounds(
            rank,
            worldSize,
            ([from, to]) => input(from * elementCount, (to - from) * elementCount),
            ([from, to], isLast) =>
              isLast
                ? output(0, elementCount)
                : scratch((from - scratchBegin) * elementCount, (to - from) * elementCount),
          );
    return {
      algorithm: "recursive-halving-reduce-scatter",
      scratchElements: worldSize > 2 ? Math.ceil(worldSize / 2) * elementCount : 0,
      rounds: withoutEmpty(rounds),
    };
  },
  cost: (parameters) =>
    costOfRounds(parameters, halvingMessages(parameters.worldSize, parameters.byteLength / parameters.worldSize)),
};
