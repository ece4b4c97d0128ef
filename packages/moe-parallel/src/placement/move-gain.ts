import { ArgumentError } from "@skein/tensor-core";
import type { ExchangeLine } from "./exchange-levels.ts";
import type { ExpertMove } from "./expert-moves.ts";

export interface MoveGainOptions {
  /** Predicted seconds of a step with the current placement. */
  readonly secondsBefore: number;
  /** Predicted seconds of a step with the new placement. */
  readonly secondsAfter: number;
  /** Number of steps that use the new placement. */
  readonly numSteps: number;
  /** Bytes of an expert's parameters and optimizer state. */
  readonly bytesPerExpert: number;
  /** Linear time model for the bytes that one rank sends or receives in the moves; a rank may move several experts. */
  readonly link: ExchangeLine;
}

/** Time saved by moving experts to new ranks, compared with the time of the moves. */
export interface MoveGain {
  /** Whether `numSteps` steps together save more time than the moves take. */
  readonly paysOff: boolean;
  readonly moveSeconds: number;
  /** Time saved by `numSteps` steps together, minus the time of the moves. */
  readonly gainSeconds: number;
  /** Number of steps after which the saved time equals the time of the moves; ∞ if the new placement saves no time. */
  readonly breakEvenSteps: number;
}

/**
 * Decides whether moves pay off: whether the time saved by n steps, n · (before − after), exceeds the time of the
 * moves. Ranks send and receive at the same time, and the busiest rank determines the time of the moves: α + β ·
 * max(sent, received) · bytes, with the numbers of experts that a rank sends and receives.
 *
 * @throws ArgumentError if an option is negative or not finite.
 * @example
 * ```ts
 * const link = { startupSeconds: 0.001, secondsPerByte: 1e-9 };
 * const times = { secondsBefore: 0.02, secondsAfter: 0.01, numSteps: 1000 };
 * const { paysOff } = moveGain([{ expert: 0, from: 0, to: 1 }], { ...times, bytesPerExpert: 1e6, link });
 * console.log(paysOff); // true
 * ```
 */
export const moveGain = (
  moves: readonly ExpertMove[],
  { secondsBefore, secondsAfter, numSteps, bytesPerExpert, link }: MoveGainOptions,
): MoveGain => {
  const { startupSeconds, secondsPerByte } = link;
  const figures = { secondsBefore, secondsAfter, numSteps, bytesPerExpert, startupSeconds, secondsPerByte };
  for (const [name, value] of Object.entries(figures))
    if (!(value >= 0 && Number.isFinite(value)))
      throw new ArgumentError(`moveGain: ${name} is ${value}; figures must be finite and not negative`);
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
