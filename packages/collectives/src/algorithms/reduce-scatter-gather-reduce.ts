import { costOfRounds, peersOf } from "../cost.ts";
import { segmented } from "../interleave.ts";
import { type Algorithm, chunkOf, type ElementRange, input, output, type Step, withoutEmpty } from "../schedule.ts";

/**
 * Reduce of a large vector in rank order: rank r combines chunk r of all ranks and sends the result to the root. In
 * shared memory, rank r writes the result directly to the root's vector: each rank reads S bytes, and no rank waits for
 * a root that reads P · S bytes.
 *
 * Cost: 2 rounds, the first with P − 1 messages and the second with one message; S bytes per rank. The root receives
 * 2(P − 1) / P · S bytes, for any P, and every rank sums (P − 1) / P · S bytes. Needs no scratch memory. Source:
 * Rabenseifner, "Optimization of collective reduction operations", 2004, without forwarding.
 * @example
 * ```ts
 * const { rounds } = reduceScatterGatherReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 3
 * ```
 */
export const reduceScatterGatherReduce: Algorithm = segmented({
  name: "reduce-scatter-gather-reduce",
  kind: "reduce",
  rankOrder: true,
  schedule: ({ rank, worldSize, elementCount, root = 0 }) => {
    const isRoot = rank === root;
    const chunk = (of: (offset: number, count: number) => ElementRange, index: number): ElementRange =>
      of(...chunkOf(elementCount, worldSize, index));
    const whole = output(0, elementCount);
    // Results are returned to the memory of the sent operands, except on the root, where this memory is the output.
    const operands = isRoot ? output : input;
    const sum = chunk(output, rank);
    const own = chunk(operands, rank);
    const peers = peersOf(rank, worldSize);
    const rounds: Step[][] = [
      [
        ...(isRoot ? [{ action: "copy", source: input(0, elementCount), target: whole } as const] : []),
        ...peers.map((peer): Step => ({ action: "send", peer, source: chunk(operands, peer) })),
        ...peers.map(
          (peer): Step => ({ action: "receive", combine: "reduce", peer, target: sum, own, returned: peer === root }),
        ),
      ],
    ];
    if (worldSize > 1)
      rounds.push(
        isRoot
          ? peers.map(
              (peer): Step => ({
                action: "receive",
                combine: "replace",
                peer,
                target: chunk(output, peer),
                returned: true,
              }),
            )
          : [{ action: "send", peer: root, source: sum, returned: true }],
        isRoot ? [] : [{ action: "clear", target: whole }],
      );
    return { algorithm: "reduce-scatter-gather-reduce", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const { worldSize, byteLength, root = 0 } = parameters;
    const bytes = byteLength / worldSize;
    return costOfRounds(parameters, [
      { sends: (rank) => peersOf(rank, worldSize).map((peer) => ({ peer, bytes, summed: true })) },
      { sends: (rank) => (rank === root ? [] : [{ peer: root, bytes }]) },
    ]);
  },
});
