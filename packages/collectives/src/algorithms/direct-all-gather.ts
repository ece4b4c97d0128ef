import { costOfRounds, peersOf } from "../cost.ts";
import { type Algorithm, input, output, type Step, withoutEmpty } from "../schedule.ts";

/**
 * All-gather in which each rank reads the operand of every peer directly.
 *
 * Cost: 1 round of P − 1 messages, (P − 1) / P · S bytes per rank for a result of S bytes.
 * @example
 * ```ts
 * const { rounds } = directAllGather.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 1
 * ```
 */
export const directAllGather: Algorithm = {
  name: "direct-all-gather",
  kind: "all-gather",
  rankOrder: true,
  schedule: ({ rank, worldSize, elementCount }) => {
    const peers = Array.from({ length: worldSize - 1 }, (_, i) => (rank + 1 + i) % worldSize);
    const operand = input(0, elementCount);
    const steps: Step[] = [
      { action: "copy", source: operand, target: output(rank * elementCount, elementCount) },
      ...peers.map((peer): Step => ({ action: "send", peer, source: operand })),
      ...peers.map(
        (peer): Step => ({
          action: "receive",
          combine: "replace",
          peer,
          target: output(peer * elementCount, elementCount),
        }),
      ),
    ];
    return { algorithm: "direct-all-gather", scratchElements: 0, rounds: withoutEmpty([steps]) };
  },
  cost: (parameters) => {
    const bytes = parameters.byteLength / parameters.worldSize;
    return costOfRounds(parameters, [
      { sends: (rank) => peersOf(rank, parameters.worldSize).map((peer) => ({ peer, bytes })) },
    ]);
  },
};
