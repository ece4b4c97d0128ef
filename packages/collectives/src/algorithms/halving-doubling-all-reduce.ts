import { costOfRounds } from "../cost.ts";
import { segmented } from "../interleave.ts";
import { type Algorithm, chunkOf, type ElementRange, input, output, type Step, withoutEmpty } from "../schedule.ts";

/**
 * All-reduce by recursive halving and doubling. With Q = 2^⌊log₂P⌋, ranks ≥ Q first send their operand to rank − Q, and
 * receive the result at the end. Ranks < Q exchange halves, quarters, … of the vector with partners at distance Q/2,
 * Q/4, …, then gather the result in reverse.
 *
 * Cost: 2⌈log₂P⌉ rounds; 2(Q − 1) / Q · S bytes per rank, and S more for a rank that also sends the result to a rank ≥
 * Q. Source: Rabenseifner, "Optimization of collective reduction operations", 2004; Thakur et al., 2005, for the ranks
 * ≥ Q.
 * @example
 * ```ts
 * const { rounds } = halvingDoublingAllReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 4
 * ```
 */
export const halvingDoublingAllReduce: Algorithm = segmented({
  name: "halving-doubling-all-reduce",
  kind: "all-reduce",
  rankOrder: false,
  schedule: ({ rank, worldSize, elementCount }) => {
    const core = 2 ** Math.floor(Math.log2(worldSize));
    const whole = output(0, elementCount);
    const rounds: Step[][] = [];
    const extra = rank >= core;
    const guest = !extra && rank + core < worldSize ? rank + core : undefined;

    const before: Step[] = [{ action: "copy", source: input(0, elementCount), target: whole }];
    if (extra) before.push({ action: "send", peer: rank - core, source: whole });
    if (guest !== undefined)
      before.push({ action: "receive", combine: "reduce", peer: guest, target: whole, own: whole });
    if (worldSize > core || core === 1) rounds.push(before);

    // Returns the elements of `count` chunks, beginning at chunk `first`, of a vector cut into Q chunks.
    const span = (first: number, count: number): ElementRange => {
      const begin = chunkOf(elementCount, core, first)[0];
      return output(begin, Math.floor(((first + count) * elementCount) / core) - begin);
    };
    let first = 0;
    for (let distance = core / 2; distance >= 1; distance /= 2) {
      if (extra) rounds.push([]);
      else {
        const upper = (rank & distance) !== 0;
        const kept = span(upper ? first + distance : first, distance);
        const given = span(upper ? first : first + distance, distance);
        if (upper) first += distance;
        const peer = rank ^ distance;
        rounds.push([
          { action: "send", peer, source: given },
          { action: "receive", combine: "reduce", peer, target: kept, own: kept },
        ]);
      }
    }
    for (let distance = 1; distance < core; distance *= 2) {
      if (extra) rounds.push([]);
      else {
        const peer = rank ^ distance;
        const theirs = (rank & distance) !== 0 ? first - distance : first + distance;
        rounds.push([
          { action: "send", peer, source: span(first, distance) },
          { action: "receive", combine: "replace", peer, target: span(theirs, distance) },
        ]);
        first = Math.min(first, theirs);
      }
    }
    if (worldSize > core) {
      rounds.push(
        extra
          ? [{ action: "receive", combine: "replace", peer: rank - core, target: whole }]
          : guest === undefined
            ? []
            : [{ action: "send", peer: guest, source: whole }],
      );
    } else if (core > 1) rounds[0]!.unshift(...before);
    return { algorithm: "halving-doubling-all-reduce", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const { worldSize, byteLength } = parameters;
    const halvings = Math.floor(Math.log2(worldSize));
    const core = 2 ** halvings;
    const distances = Array.from({ length: halvings }, (_, k) => 2 ** k);
    const exchange = (distance: number, summed: boolean) => ({
      sends: (rank: number) =>
        rank < core ? [{ peer: rank ^ distance, bytes: (byteLength * distance) / core, summed }] : [],
    });
    return costOfRounds(parameters, [
      { sends: (rank) => (rank >= core ? [{ peer: rank - core, bytes: byteLength, summed: true }] : []) },
      ...distances.toReversed().map((distance) => exchange(distance, true)),
      ...distances.map((distance) => exchange(distance, false)),
      { sends: (rank) => (rank < worldSize - core ? [{ peer: rank + core, bytes: byteLength }] : []) },
    ]);
  },
});
