import { modulo } from "../schedule.ts";

/** One round in which a rank that holds blocks 0 … first − 1, counted from its own, gets `blocks` more. */
export interface BruckRound {
  readonly to: number;
  readonly from: number;
  readonly first: number;
  readonly blocks: number;
}

/** The ⌈log₂P⌉ rounds of Bruck's all-gather: what a rank holds doubles, and the last round brings what is missing. */
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
