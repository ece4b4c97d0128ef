import { costOfRounds } from "../cost.ts";
import { segmented } from "../interleave.ts";
import { type Algorithm, input, output, type Step, withoutEmpty } from "../schedule.ts";

/**
 * Reduce along a chain in rank order: each rank adds its operand to the sum of all lower ranks and forwards the sum,
 * `((x₀ + x₁) + x₂) + …`. The last rank sends the result to the root. Designed for segments: a rank forwards one
 * segment while it receives the next segment. If the ranks of each host are consecutive, only S bytes leave a host.
 *
 * Cost: P + s − 1 rounds for s segments, one fewer if the last rank is the root; S bytes per rank, the minimum of any
 * reduce. A root in the middle of the chain receives 2S bytes: the partial sum and the result. Source: van de Geijn and
 * Watts, 1997 (their pipelined broadcast), as a prefix sum.
 * @example
 * ```ts
 * const { rounds } = chainReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 5
 * ```
 */
export const chainReduce: Algorithm = segmented(
  {
    name: "chain-reduce",
    kind: "reduce",
    rankOrder: true,
    schedule: ({ rank, worldSize, elementCount, root = 0 }) => {
      const last = worldSize - 1;
      const operand = input(0, elementCount);
      const whole = output(0, elementCount);
      const rounds: Step[][] = Array.from({ length: worldSize + 1 }, () => []);
      if (last === 0) rounds[0]!.push({ action: "copy", source: operand, target: whole });
      if (rank > 0)
        rounds[rank - 1]!.push({ action: "receive", combine: "reduce", peer: rank - 1, target: whole, own: operand });
      const next = rank < last ? rank + 1 : root;
      if (next !== rank) rounds[rank]!.push({ action: "send", peer: next, source: rank === 0 ? operand : whole });
      if (rank !== root) rounds[worldSize]!.push({ action: "clear", target: whole });
      else if (rank < last) rounds[last]!.push({ action: "receive", combine: "replace", peer: last, target: whole });
      return { algorithm: "chain-reduce", scratchElements: 0, rounds: withoutEmpty(rounds) };
    },
    cost: (parameters) => {
      const { worldSize, byteLength: bytes, root = 0 } = parameters;
      const last = worldSize - 1;
      return costOfRounds(
        parameters,
        Array.from({ length: worldSize }, (_, round) => ({
          sends: (rank) => {
            if (rank !== round || (rank === last && rank === root)) return [];
            return [rank < last ? { peer: rank + 1, bytes, summed: true } : { peer: root, bytes }];
          },
        })),
      );
    },
  },
  { maxSegments: 64, onePerPair: true },
);
