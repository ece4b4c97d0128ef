import { modulo } from "../schedule.ts";

/**
 * One round of Bruck's all-gather. The rank already has the blocks of `first` ranks, counted from its own rank, and
 * receives `blocks` more blocks.
 */
export interface BruckRound {
  readonly to: number;
  readonly from: number;
  readonly first: number;
  readonly blocks: number;
}

/**
 * Returns the ⌈log₂P⌉ rounds of Bruck's all-gather. The number of blocks doubles in each round except the last, which
 * fetches the remaining blocks.
 */
export const bruckRounds = (rank: number, worldSize: number): BruckRound[] => {
  const rounds: BruckRound[] = [];
  for (let first = 1; first < worldSize; first *= 2)
    rounds.push({
      to: modulo(rank - first, worldSize),
      from: modulo(rank + first, worldSize),
      first,
      blocks: Math.min(first, worldSize - first),
    });
  return rounds;
};
