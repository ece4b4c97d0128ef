import { costOfRounds } from "../cost.ts";
import { segmented } from "../interleave.ts";
import { type Algorithm, input, modulo, output, type Step, withoutEmpty } from "../schedule.ts";

/**
 * Broadcast along a binomial tree: in round k the 2^k ranks that have the value send it to 2^k others.
 *
 * Cost: ⌈log₂P⌉ rounds; ⌈log₂P⌉ · S bytes sent by the root, the busiest rank.
 * Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005.
 */
export const binomialBroadcast: Algorithm = segmented({
  name: "binomial-broadcast",
  kind: "broadcast",
  rankOrder: true,
  schedule: ({ rank, worldSize, elementCount, root = 0 }) => {
    const place = modulo(rank - root, worldSize);
    const peerAt = (position: number): number => modulo(position + root, worldSize);
    const whole = output(0, elementCount);
    const rounds: Step[][] = [place === 0 ? [{ action: "copy", source: input(0, elementCount), target: whole }] : []];
    for (let k = 0; 2 ** k < worldSize; k++) {
      const distance = 2 ** k;
      const steps = (rounds[k] ??= []);
      if (place < distance && place + distance < worldSize)
        steps.push({ action: "send", peer: peerAt(place + distance), source: whole });
      if (place >= distance && place < 2 * distance)
        steps.push({ action: "receive", combine: "replace", peer: peerAt(place - distance), target: whole });
    }
    return { algorithm: "binomial-broadcast", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (place) => {
    const { worldSize, byteLength: bytes, root = 0 } = place;
    return costOfRounds(
      place,
      Array.from({ length: Math.ceil(Math.log2(worldSize)) }, (_, k) => ({
        sends: (rank) => {
          const position = modulo(rank - root, worldSize);
          return position < 2 ** k && position + 2 ** k < worldSize
            ? [{ peer: modulo(rank + 2 ** k, worldSize), bytes }]
            : [];
        },
      })),
    );
  },
});
