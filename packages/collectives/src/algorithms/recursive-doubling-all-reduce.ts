import { costOfRounds } from "../cost.ts";
import { segmented } from "../interleave.ts";
import { type Algorithm, type ElementRange, input, output, scratch, type Step, withoutEmpty } from "../schedule.ts";

/**
 * All-reduce by recursive doubling. With Q = 2^⌊log₂P⌋, ranks ≥ Q first send their operand to rank − Q, and receive the
 * result at the end. Ranks < Q exchange complete partial sums with partners at distance 1, 2, 4, …. A sum must not be
 * written to memory in use by a send, so sums alternate between the output and a scratch vector.
 *
 * Cost: 2⌈log₂P⌉ − ⌊log₂P⌋ rounds of S bytes, the minimum number of rounds. Suitable for small vectors. Ranks ≥ Q, if
 * any, add two rounds. Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
 * MPICH", 2005.
 * @example
 * ```ts
 * const { rounds } = recursiveDoublingAllReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 2
 * ```
 */
export const recursiveDoublingAllReduce: Algorithm = segmented({
  name: "recursive-doubling-all-reduce",
  kind: "all-reduce",
  rankOrder: false,
  schedule: ({ rank, worldSize, elementCount }) => {
    const doublings = Math.floor(Math.log2(worldSize));
    const core = 2 ** doublings;
    const whole = output(0, elementCount);
    // Memory of the sum after doubling `k`. The last sum is written to the output.
    const sumAfter = (k: number): ElementRange => ((doublings - k) % 2 === 0 ? whole : scratch(0, elementCount));
    const rounds: Step[][] = [];
    const extra = rank >= core;
    const guest = !extra && rank + core < worldSize ? rank + core : undefined;
    const operand = input(0, elementCount);
    const first: Step[] = [];
    if (extra) first.push({ action: "send", peer: rank - core, source: operand });
    else if (guest === undefined) first.push({ action: "copy", source: operand, target: sumAfter(0) });
    else first.push({ action: "receive", combine: "reduce", peer: guest, target: sumAfter(0), own: operand });
    rounds.push(first);
    for (let k = 0; k < doublings; k++) {
      if (extra) {
        rounds.push([]);
        continue;
      }
      const peer = rank ^ (2 ** k);
      const exchange: Step[] = [
        { action: "send", peer, source: sumAfter(k) },
        { action: "receive", combine: "reduce", peer, target: sumAfter(k + 1), own: sumAfter(k) },
      ];
      if (k === 0 && core === worldSize) rounds[0]!.push(...exchange);
      else rounds.push(exchange);
    }
    if (worldSize > core) {
      if (extra) rounds.push([{ action: "receive", combine: "replace", peer: rank - core, target: whole }]);
      else rounds.push(guest === undefined ? [] : [{ action: "send", peer: guest, source: whole }]);
    }
    return {
      algorithm: "recursive-doubling-all-reduce",
      scratchElements: doublings > 0 ? elementCount : 0,
      rounds: withoutEmpty(rounds),
    };
  },
  cost: (parameters) => {
    const { worldSize, byteLength: bytes } = parameters;
    const doublings = Math.floor(Math.log2(worldSize));
    const core = 2 ** doublings;
    return costOfRounds(parameters, [
      { sends: (rank) => (rank >= core ? [{ peer: rank - core, bytes, summed: true }] : []) },
      ...Array.from({ length: doublings }, (_, k) => ({
        sends: (rank: number) => (rank < core ? [{ peer: rank ^ (2 ** k), bytes, summed: true }] : []),
      })),
      { sends: (rank) => (rank < worldSize - core ? [{ peer: rank + core, bytes }] : []) },
    ]);
  },
});
