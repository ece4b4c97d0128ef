import { costOfRounds, peersOf } from "../cost.ts";
import { type Algorithm, input, output, type Step, withoutEmpty } from "../schedule.ts";

/**
 * Reduce-scatter in which rank r receives chunk r of all ranks in one round and combines the chunks in rank order.
 *
 * Cost: 1 round of P − 1 messages, (P − 1) / P · S bytes per rank for an operand of S bytes. Needs no scratch memory.
 * @example
 * ```ts
 * const { rounds } = directReduceScatter.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 1
 * ```
 */
export const directReduceScatter: Algorithm = {
  name: "direct-reduce-scatter",
  kind: "reduce-scatter",
  rankOrder: true,
  schedule: ({ rank, worldSize, elementCount }) => {
    const peers = Array.from({ length: worldSize - 1 }, (_, i) => (rank + 1 + i) % worldSize);
    const own = input(rank * elementCount, elementCount);
    const target = output(0, elementCount);
    const steps: Step[] =
      worldSize === 1
        ? [{ action: "copy", source: own, target }]
        : [
            ...peers.map((peer): Step => ({ action: "send", peer, source: input(peer * elementCount, elementCount) })),
            ...peers.map((peer): Step => ({ action: "receive", combine: "reduce", peer, target, own })),
          ];
    return { algorithm: "direct-reduce-scatter", scratchElements: 0, rounds: withoutEmpty([steps]) };
  },
  cost: (parameters) => {
    const bytes = parameters.byteLength / parameters.worldSize;
    return costOfRounds(parameters, [
      { sends: (rank) => peersOf(rank, parameters.worldSize).map((peer) => ({ peer, bytes, summed: true })) },
    ]);
  },
};
