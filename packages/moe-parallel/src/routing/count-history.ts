import { ArgumentError } from "@skein/tensor-core";
import { checkDecay } from "../options.ts";

/** Token counts per expert of the most recent steps; plain data, can be serialized as JSON. */
export interface CountWindow {
  readonly kind: "window";
  readonly numExperts: number;
  /** Maximum number of steps in the window. */
  readonly maxSteps: number;
  /** Number of tokens that chose each expert, per step, oldest step first. */
  readonly steps: readonly (readonly number[])[];
}

/** Exponentially decaying sums of token counts per expert; plain data, can be serialized as JSON. */
export interface DecayedCounts {
  readonly kind: "decayed";
  readonly numExperts: number;
  /** Decay factor per step, in [0, 1]. */
  readonly decay: number;
  readonly sums: readonly number[];
  /** Total weight of all steps. `sums` divided by `weight` is a mean, valid from the first step on. */
  readonly weight: number;
}

/** History of one layer's token counts per expert. */
export type CountHistory = CountWindow | DecayedCounts;

const checkNumExperts = (fn: string, numExperts: number): void => {
  if (!Number.isInteger(numExperts) || numExperts < 1)
    throw new ArgumentError(`${fn}: numExperts is ${numExperts}; use a whole number from 1`);
};

/**
 * Returns an empty window of counts. Throws ArgumentError if an argument is not a positive integer.
 *
 * @example
 * ```ts
 * const history = recordCounts(recordCounts(countWindow(2, 10), [4, 0]), [2, 2]);
 * console.log(meanCounts(history)); // [3, 1]
 * ```
 */
export const countWindow = (numExperts: number, maxSteps: number): CountWindow => {
  checkNumExperts("countWindow", numExperts);
  if (!Number.isInteger(maxSteps) || maxSteps < 1)
    throw new ArgumentError(`countWindow: maxSteps is ${maxSteps}; use a whole number from 1`);
  return { kind: "window", numExperts, maxSteps, steps: [] };
};

/**
 * Returns empty decaying counts.
 * @param decay in [0, 1]. The mean covers about the last 1 / (1 − decay) steps; with 1, all steps.
 * @throws ArgumentError if the decay is outside [0, 1], or the number of experts is not a positive integer.
 * @example
 * ```ts
 * const history = recordCounts(recordCounts(decayedCounts(2, 0.5), [4, 0]), [4, 0]);
 * console.log(meanCounts(history)); // [4, 0]
 * ```
 */
export const decayedCounts = (numExperts: number, decay: number): DecayedCounts => {
  checkNumExperts("decayedCounts", numExperts);
  checkDecay("decayedCounts", "decay", decay);
  return { kind: "decayed", numExperts, decay, sums: Array.from({ length: numExperts }, () => 0), weight: 0 };
};

/**
 * Adds the counts of a further step.
 *
 * @param counts the step's count of each expert, as from `expertCounts`.
 * @throws ArgumentError if the number of counts is not the number of experts.
 * @example
 * ```ts
 * const routing = { numExperts: 2, numChoices: 1, choices: Int32Array.of(0, 0, 1) };
 * console.log(meanCounts(recordCounts(countWindow(2, 10), expertCounts(routing)))); // [2, 1]
 * ```
 */
export const recordCounts = (history: CountHistory, counts: readonly number[]): CountHistory => {
  if (counts.length !== history.numExperts)
    throw new ArgumentError(
      `recordCounts: ${counts.length} counts for ${history.numExperts} experts; give one count per expert`,
    );
  if (history.kind === "window") return { ...history, steps: [...history.steps, [...counts]].slice(-history.maxSteps) };
  const { decay, sums, weight } = history;
  return { ...history, sums: sums.map((sum, expert) => decay * sum + counts[expert]!), weight: decay * weight + 1 };
};

/**
 * Returns the mean number of tokens per step that chose each expert; 0 before the first step.
 *
 * @example
 * ```ts
 * console.log(meanCounts(recordCounts(countWindow(2, 10), [4, 0]))); // [4, 0]
 * ```
 */
export const meanCounts = (history: CountHistory): readonly number[] => {
  if (history.kind === "decayed") return history.sums.map((sum) => (history.weight === 0 ? 0 : sum / history.weight));
  const { steps, numExperts } = history;
  return Array.from(
    { length: numExperts },
    (_, expert) => steps.reduce((sum, counts) => sum + counts[expert]!, 0) / Math.max(1, steps.length),
  );
};

const outlineOf = (history: CountHistory): string =>
  history.kind === "window"
    ? `a window of ${history.steps.length} of ${history.maxSteps} steps, ${history.numExperts} experts`
    : `decay ${history.decay} with weight ${history.weight}, ${history.numExperts} experts`;

const added = (a: readonly number[], b: readonly number[]): number[] => a.map((count, i) => count + b[i]!);

/**
 * Adds the histories of two ranks for the same steps. The result equals the history of the summed counts.
 *
 * @throws ArgumentError if the histories have different kinds, sizes or numbers of steps.
 */
export const addCounts = (a: CountHistory, b: CountHistory): CountHistory => {
  if (outlineOf(a) === outlineOf(b)) {
    if (a.kind === "window" && b.kind === "window")
      return { ...a, steps: a.steps.map((counts, step) => added(counts, b.steps[step]!)) };
    if (a.kind === "decayed" && b.kind === "decayed") return { ...a, sums: added(a.sums, b.sums) };
  }
  throw new ArgumentError(`addCounts: ${outlineOf(a)}, and ${outlineOf(b)}; add histories of the same steps`);
};
