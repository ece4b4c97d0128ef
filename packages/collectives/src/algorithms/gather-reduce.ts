import { costOfRounds } from "../cost.ts";
import { segmented } from "../interleave.ts";
import { type Algorithm, input, modulo, output, scratch, withoutEmpty } from "../schedule.ts";
import { gatherMessages, gatherRounds, positionsOf } from "./binomial-tree.ts";

/**
 * Reduce of a small vector: a binomial tree gathers all operands at the root, which sums the operands in rank order. No
 * other reduce in rank order has fewer consecutive messages.
 *
 * Cost: ⌈log₂P⌉ rounds of one message. With Q = 2^⌊log₂P⌋ the busiest rank sends max(P − Q, Q / 2) · S bytes. The root
 * receives and sums (P − 1) · S bytes, and needs (P − 1) · S bytes of scratch memory. Source: Thakur et al., 2005, for
 * the gather; a local sum, as in `gatherAllReduce`.
 * @example
 * ```ts
 * const { rounds } = gatherReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 3
 * ```
 */
export const gatherReduce: Algorithm = segmented({
  name: "gather-reduce",
  kind: "reduce",
  rankOrder: true,
  schedule: ({ elementCount, ...parameters }) => {
    const { worldSize, root = 0 } = parameters;
    const { position } = positionsOf(parameters);
    const operand = input(0, elementCount);
    const whole = output(0, elementCount);
    // Blocks in scratch memory are in order of positions. The root and the leaves, which forward only their own
    // operand, do not copy the operand to scratch memory.
    const base = position === 0 ? 1 : position;
    let blocksHeld = 0;
    const block = (first: number, count = 1) => scratch((first - base) * elementCount, count * elementCount);
    const rounds = gatherRounds(parameters, (first, count) => {
      if (first === position && count === 1) return operand;
      blocksHeld = Math.max(blocksHeld, first + count - base);
      return block(first, count);
    });
    if (position !== 0) {
      if (blocksHeld > 0) rounds[0]!.push({ action: "copy", source: operand, target: block(position) });
      rounds.push([{ action: "clear", target: whole }]);
    } else {
      const sources = Array.from({ length: worldSize }, (_, rank) =>
        rank === root ? operand : block(modulo(rank - root, worldSize)),
      );
      rounds.push([
        worldSize === 1
          ? { action: "copy", source: operand, target: whole }
          : { action: "fold", sources, target: whole },
      ]);
    }
    return {
      algorithm: "gather-reduce",
      scratchElements: blocksHeld * elementCount,
      rounds: withoutEmpty(rounds),
    };
  },
  cost: (parameters) => costOfRounds(parameters, gatherMessages(parameters, parameters.byteLength, true)),
});
