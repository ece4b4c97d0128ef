import { costOfRounds, peersOf } from "../cost.ts";
import { segmented } from "../interleave.ts";
import { type Algorithm, input, output, type Step, withoutEmpty } from "../schedule.ts";

/**
 * All-reduce with one server, rank 0: every rank sends its vector to the server, and the server sends the sum to every
 * rank. A baseline for comparison. In `directAllReduce`, each rank is the server for one chunk.
 *
 * Cost: 2 rounds of P − 1 messages at the server, which receives (P − 1) · S bytes and sends (P − 1) · S bytes. Source:
 * Li et al., "Scaling distributed machine learning with the parameter server", 2014.
 * @example
 * ```ts
 * const { rounds } = parameterServerAllReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 2
 * ```
 */
export const parameterServerAllReduce: Algorithm = segmented({
  name: "parameter-server-all-reduce",
  kind: "all-reduce",
  rankOrder: true,
  schedule: ({ rank, worldSize, elementCount }) => {
    const operand = input(0, elementCount);
    const whole = output(0, elementCount);
    const workers = peersOf(0, worldSize);
    const rounds: Step[][] = [[]];
    if (worldSize === 1) rounds[0]!.push({ action: "copy", source: operand, target: whole });
    else if (rank === 0) {
      rounds[0]!.push(
        ...workers.map(
          (peer): Step => ({ action: "receive", combine: "reduce", peer, target: whole, own: operand, returned: true }),
        ),
      );
      rounds.push(workers.map((peer): Step => ({ action: "send", peer, source: whole, returned: true })));
    } else {
      rounds[0]!.push({ action: "copy", source: operand, target: whole }, { action: "send", peer: 0, source: whole });
      rounds.push([{ action: "receive", combine: "replace", peer: 0, target: whole, returned: true }]);
    }
    return { algorithm: "parameter-server-all-reduce", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const { worldSize, byteLength: bytes } = parameters;
    return costOfRounds(parameters, [
      { sends: (rank) => (rank === 0 ? [] : [{ peer: 0, bytes, summed: true }]) },
      { sends: (rank) => (rank === 0 ? peersOf(0, worldSize).map((peer) => ({ peer, bytes })) : []) },
    ]);
  },
});
