import { costOfRounds, peersOf } from "../cost.ts";
import { segmented } from "../interleave.ts";
import { type Algorithm, input, output, type Step, withoutEmpty } from "../schedule.ts";

/**
 * Reduce in which every rank sends its operand to the root, which combines the operands in rank order. The number of
 * rounds is the minimum, but the root reads all operands.
 *
 * Cost: 1 round of one message, S bytes per rank. The root receives P − 1 messages and sums (P − 1) · S bytes. Needs no
 * scratch memory.
 * @example
 * ```ts
 * const { rounds } = directReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 2
 * ```
 */
export const directReduce: Algorithm = segmented({
  name: "direct-reduce",
  kind: "reduce",
  rankOrder: true,
  schedule: ({ rank, worldSize, elementCount, root = 0 }) => {
    const operand = input(0, elementCount);
    const whole = output(0, elementCount);
    const rounds: Step[][] =
      worldSize === 1
        ? [[{ action: "copy", source: operand, target: whole }]]
        : rank === root
          ? [
              peersOf(root, worldSize).map(
                (peer): Step => ({ action: "receive", combine: "reduce", peer, target: whole, own: operand }),
              ),
              [],
            ]
          : [[{ action: "send", peer: root, source: operand }], [{ action: "clear", target: whole }]];
    return { algorithm: "direct-reduce", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const { byteLength: bytes, root = 0 } = parameters;
    return costOfRounds(parameters, [
      { sends: (rank) => (rank === root ? [] : [{ peer: root, bytes, summed: true }]) },
    ]);
  },
});
