import { costOfRounds } from "../cost.ts";
import { segmented } from "../interleave.ts";
import { type Algorithm, input, modulo, output, type Step, withoutEmpty } from "../schedule.ts";

/**
 * Broadcast along a chain that begins at the root: each rank forwards the vector to the next rank. Designed for
 * segments: a rank forwards one segment while it receives the next segment.
 *
 * Cost: P − 2 + s rounds for s segments, S bytes per rank: twice as fast as any tree for large S. Source: van de Geijn
 * and Watts, "SUMMA: scalable universal matrix multiplication algorithm", 1997 (its pipelined broadcast).
 * @example
 * ```ts
 * const { rounds } = chainBroadcast.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 3
 * ```
 */
export const chainBroadcast: Algorithm = segmented(
  {
    name: "chain-broadcast",
    kind: "broadcast",
    rankOrder: true,
    schedule: ({ rank, worldSize, elementCount, root = 0 }) => {
      const position = modulo(rank - root, worldSize);
      const whole = output(0, elementCount);
      const rounds: Step[][] = Array.from({ length: Math.max(1, worldSize - 1) }, () => []);
      if (position === 0) rounds[0]!.push({ action: "copy", source: input(0, elementCount), target: whole });
      if (position < worldSize - 1)
        rounds[position]!.push({ action: "send", peer: modulo(rank + 1, worldSize), source: whole });
      if (position > 0)
        rounds[position - 1]!.push({
          action: "receive",
          combine: "replace",
          peer: modulo(rank - 1, worldSize),
          target: whole,
        });
      return { algorithm: "chain-broadcast", scratchElements: 0, rounds: withoutEmpty(rounds) };
    },
    cost: (parameters) => {
      const { worldSize, byteLength: bytes, root = 0 } = parameters;
      return costOfRounds(
        parameters,
        Array.from({ length: worldSize - 1 }, (_, position) => ({
          sends: (rank) =>
            modulo(rank - root, worldSize) === position ? [{ peer: modulo(rank + 1, worldSize), bytes }] : [],
        })),
      );
    },
  },
  { maxSegments: 64, onePerPair: true },
);
