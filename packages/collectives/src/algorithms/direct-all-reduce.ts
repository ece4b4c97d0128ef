import { costOfRounds, peersOf } from "../cost.ts";
import { segmented } from "../interleave.ts";
import { type Algorithm, chunkOf, type ElementRange, input, output, type Step, withoutEmpty } from "../schedule.ts";

/**
 * All-reduce in which rank r combines chunk r of all ranks and sends the result to all ranks. In shared memory, rank r
 * reads and writes the peers' buffers in place: each rank reads S bytes and writes S bytes in one pass, with one wait
 * before the pass and one wait after the pass.
 *
 * Cost: 2 rounds of P − 1 messages, 2(P − 1) / P · S bytes per rank. Always sums in rank order, so the bits of the
 * result do not depend on the chunk boundaries.
 * @example
 * ```ts
 * const { rounds } = directAllReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 2
 * ```
 */
export const directAllReduce: Algorithm = segmented({
  name: "direct-all-reduce",
  kind: "all-reduce",
  rankOrder: true,
  schedule: ({ rank, worldSize, elementCount }) => {
    const chunk = (index: number): ElementRange => output(...chunkOf(elementCount, worldSize, index));
    const own = chunk(rank);
    const peers = Array.from({ length: worldSize - 1 }, (_, i) => (rank + 1 + i) % worldSize);
    const rounds: Step[][] = [
      [
        { action: "copy", source: input(0, elementCount), target: output(0, elementCount) },
        ...peers.map((peer): Step => ({ action: "send", peer, source: chunk(peer) })),
        ...peers.map(
          (peer): Step => ({ action: "receive", combine: "reduce", peer, target: own, own, returned: true }),
        ),
      ],
    ];
    if (worldSize > 1) {
      rounds.push([
        ...peers.map((peer): Step => ({ action: "send", peer, source: own, returned: true })),
        ...peers.map(
          (peer): Step => ({ action: "receive", combine: "replace", peer, target: chunk(peer), returned: true }),
        ),
      ]);
    }
    return { algorithm: "direct-all-reduce", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const bytes = parameters.byteLength / parameters.worldSize;
    const toAll = (summed: boolean) => ({
      sends: (rank: number) => peersOf(rank, parameters.worldSize).map((peer) => ({ peer, bytes, summed })),
    });
    return costOfRounds(parameters, [toAll(true), toAll(false)]);
  },
});
