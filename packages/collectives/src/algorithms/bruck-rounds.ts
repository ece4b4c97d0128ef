import { modulo } from "../schedule.ts";

/** A round in which a rank with blocks 0 … first − 1, counted from its own, receives `blocks` more. */
export interface BruckRound {
  readonly to: number;
  readonly from: number;
  readonly first: number;
  readonly blocks: number;
}

/** The ⌈log₂P⌉ rounds of Bruck's all-gather: the number of blocks doubles, and the last round fetches the rest. */
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
