import { costOfRounds, type Message } from "../cost.ts";
import { segmented } from "../interleave.ts";
import {
  type Algorithm,
  chunkOf,
  type ElementRange,
  input,
  modulo,
  output,
  type Step,
  withoutEmpty,
} from "../schedule.ts";

/**
 * Chunks that position `position` hands on in round `k` of a binomial scatter, to the rank that is as far as there are
 * chunks.
 */
const handedOn = (
  position: number,
  worldSize: number,
  k: number,
): { distance: number; chunks: number; sends: boolean; receives: boolean } => {
  const distance = 2 ** (Math.ceil(Math.log2(worldSize)) - 1 - k);
  const receives = position % (2 * distance) === distance;
  const first = receives ? position : position + distance;
  return {
    distance,
    chunks: Math.min(distance, worldSize - first),
    sends: position % (2 * distance) === 0 && first < worldSize,
    receives,
  };
};

/**
 * Broadcast of a large vector: the root deals out P chunks along a binomial tree, and a ring gathers them everywhere.
 *
 * Cost: ⌈log₂P⌉ + P − 1 rounds; the root sends 2(P − 1) / P · S bytes, whatever P is.
 * Source: Barnett et al., "Interprocessor collective communication library", 1994; Thakur et al., 2005.
 */
export const scatterAllGatherBroadcast: Algorithm = segmented({
  name: "scatter-all-gather-broadcast",
  kind: "broadcast",
  rankOrder: true,
  schedule: ({ rank, worldSize, elementCount, root = 0 }) => {
    const position = modulo(rank - root, worldSize);
    const peerAt = (other: number): number => modulo(other + root, worldSize);
    const chunks = (first: number, count: number): ElementRange => {
      const offset = chunkOf(elementCount, worldSize, first)[0];
      return output(offset, Math.floor(((first + count) * elementCount) / worldSize) - offset);
    };
    const scatterRounds = Math.ceil(Math.log2(worldSize));
    const rounds: Step[][] = [
      position === 0 ? [{ action: "copy", source: input(0, elementCount), target: output(0, elementCount) }] : [],
    ];
    for (let k = 0; k < scatterRounds; k++) {
      const { distance, chunks: count, sends, receives } = handedOn(position, worldSize, k);
      const steps = (rounds[k] ??= []);
      if (sends)
        steps.push({ action: "send", peer: peerAt(position + distance), source: chunks(position + distance, count) });
      if (receives)
        steps.push({
          action: "receive",
          combine: "replace",
          peer: peerAt(position - distance),
          target: chunks(position, count),
        });
    }
    for (let k = 0; k < worldSize - 1; k++)
      rounds.push([
        { action: "send", peer: peerAt(position + 1), source: chunks(modulo(position - k, worldSize), 1) },
        {
          action: "receive",
          combine: "replace",
          peer: peerAt(position - 1),
          target: chunks(modulo(position - 1 - k, worldSize), 1),
        },
      ]);
    return { algorithm: "scatter-all-gather-broadcast", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (place) => {
    const { worldSize, byteLength, root = 0 } = place;
    const chunk = byteLength / worldSize;
    return costOfRounds(place, [
      ...Array.from({ length: Math.ceil(Math.log2(worldSize)) }, (_, k) => ({
        sends: (rank: number): Message[] => {
          const { distance, chunks, sends } = handedOn(modulo(rank - root, worldSize), worldSize, k);
          return sends ? [{ peer: modulo(rank + distance, worldSize), bytes: chunks * chunk }] : [];
        },
      })),
      { times: worldSize - 1, sends: (rank) => [{ peer: modulo(rank + 1, worldSize), bytes: chunk }] },
    ]);
  },
});
