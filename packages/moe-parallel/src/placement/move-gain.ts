import { ArgumentError } from "@skein/tensor-core";
import type { ExchangeLine } from "./exchange-levels.ts";
import type { ExpertMove } from "./expert-moves.ts";

export interface MoveGainOptions {
  /** Predicted for a step with the placement as it is. */
  readonly secondsBefore: number;
  /** Predicted for a step once experts have moved. */
  readonly secondsAfter: number;
  /** Steps that the new placement will be kept. */
  readonly numSteps: number;
  /** An expert's parameters and optimizer state. */
  readonly bytesPerExpert: number;
  /** What it takes a rank to send or receive so many bytes, of several experts at once. */
  readonly link: ExchangeLine;
}

/** Whether moving experts is worth what it takes. */
export interface MoveGain {
  /** The gain of all steps is more than the moves take. */
  readonly paysOff: boolean;
  readonly moveSeconds: number;
  /** Of all `numSteps`, less what the moves take. */
  readonly gainSeconds: number;
  /** After how many steps the moves have paid for themselves; ∞ where a step gains nothing. */
  readonly breakEvenSteps: number;
}

/**
 * Decide whether moves pay: n · (before − after) against the time of the moves. Ranks send and receive at the same
 * time, and the busiest rank tells when all are done: α + β · max(sent, received) · bytes.
 *
 * @throws ArgumentError for figures that are negative or not finite.
 */
export const moveGain = (
  moves: readonly ExpertMove[],
  { secondsBefore, secondsAfter, numSteps, bytesPerExpert, link }: MoveGainOptions,
): MoveGain => {
  const { startupSeconds, secondsPerByte } = link;
  const figures = { secondsBefore, secondsAfter, numSteps, bytesPerExpert, startupSeconds, secondsPerByte };
  for (const [name, value] of Object.entries(figures))
    if (!(value >= 0 && Number.isFinite(value)))
      throw new ArgumentError(`moveGain: ${name} is ${value}; figures are finite and not negative`);
  const busiest = (side: "from" | "to"): number => {
    const numMoves = new Map<number, number>();
    for (const { [side]: rank } of moves) numMoves.set(rank, (numMoves.get(rank) ?? 0) + 1);
    return Math.max(0, ...numMoves.values());
  };
  const moveSeconds =
    moves.length === 0
      ? 0
      : startupSeconds + secondsPerByte * bytesPerExpert * Math.max(busiest("from"), busiest("to"));
  const gainPerStep = secondsBefore - secondsAfter;
  const gainSeconds = numSteps * gainPerStep - moveSeconds;
  return {
    paysOff: gainSeconds > 0,
    moveSeconds,
    gainSeconds,
    breakEvenSteps: gainPerStep > 0 ? moveSeconds / gainPerStep : Infinity,
  };
};
