import { ArgumentError } from "@skein/tensor-core";
import { checkDecay } from "../options.ts";

/** Counts per expert of the last steps, as they were; plain data, which survives JSON. */
export interface CountWindow {
  readonly kind: "window";
  readonly numExperts: number;
  /** How many steps are kept at most. */
  readonly maxSteps: number;
  /** Tokens that chose each expert, the oldest step first. */
  readonly steps: readonly (readonly number[])[];
}

/** Sums per expert in which older steps count less and less; plain data, which survives JSON. */
export interface DecayedCounts {
  readonly kind: "decayed";
  readonly numExperts: number;
  /** What a step counts once another has come, against before: in [0, 1]. */
  readonly decay: number;
  readonly sums: readonly number[];
  /** What the steps count together; sums divided by it are a mean from the first step on. */
  readonly weight: number;
}

/** What is remembered of how many tokens chose each expert of one layer. */
export type CountMemory = CountWindow | DecayedCounts;

const checkNumExperts = (fn: string, numExperts: number): void => {
  if (!Number.isInteger(numExperts) || numExperts < 1)
    throw new ArgumentError(`${fn}: ${numExperts} experts; give a whole number from 1`);
};

/** @throws ArgumentError for numbers that are no counts. */
export const countWindow = (numExperts: number, maxSteps: number): CountWindow => {
  checkNumExperts("countWindow", numExperts);
  if (!Number.isInteger(maxSteps) || maxSteps < 1)
    throw new ArgumentError(`countWindow: a window of ${maxSteps} steps; give a whole number from 1`);
  return { kind: "window", numExperts, maxSteps, steps: [] };
};

/**
 * @param decay in [0, 1]; a mean over about 1 / (1 − decay) steps, over all for 1.
 * @throws ArgumentError for another decay, and a number of experts that is no count.
 */
export const decayedCounts = (numExperts: number, decay: number): DecayedCounts => {
  checkNumExperts("decayedCounts", numExperts);
  checkDecay("decayedCounts", "decay", decay);
  return { kind: "decayed", numExperts, decay, sums: Array.from({ length: numExperts }, () => 0), weight: 0 };
};

/**
 * Remember one more step.
 *
 * @param counts of the step for every expert, as `expertCounts` gives.
 * @throws ArgumentError for another number of counts than of experts.
 */
export const rememberCounts = (memory: CountMemory, counts: readonly number[]): CountMemory => {
  if (counts.length !== memory.numExperts)
    throw new ArgumentError(
      `rememberCounts: ${counts.length} counts for ${memory.numExperts} experts; give one for each expert`,
    );
  if (memory.kind === "window") return { ...memory, steps: [...memory.steps, [...counts]].slice(-memory.maxSteps) };
  const { decay, sums, weight } = memory;
  return { ...memory, sums: sums.map((sum, expert) => decay * sum + counts[expert]!), weight: decay * weight + 1 };
};

/** Tokens per step that chose each expert, in the mean of what is remembered; 0 before the first step. */
export const meanCounts = (memory: CountMemory): readonly number[] => {
  if (memory.kind === "decayed") return memory.sums.map((sum) => (memory.weight === 0 ? 0 : sum / memory.weight));
  const { steps, numExperts } = memory;
  return Array.from(
    { length: numExperts },
    (_, expert) => steps.reduce((sum, counts) => sum + counts[expert]!, 0) / Math.max(1, steps.length),
  );
};

const outlineOf = (memory: CountMemory): string =>
  memory.kind === "window"
    ? `a window of ${memory.steps.length} of ${memory.maxSteps} steps, ${memory.numExperts} experts`
    : `decay ${memory.decay} with weight ${memory.weight}, ${memory.numExperts} experts`;

const added = (a: readonly number[], b: readonly number[]): number[] => a.map((count, i) => count + b[i]!);

/**
 * Add what two ranks remember of the same steps: the same as remembering the sums of their counts.
 *
 * @throws ArgumentError for memories of different kinds, sizes or numbers of steps.
 */
export const addCounts = (a: CountMemory, b: CountMemory): CountMemory => {
  if (outlineOf(a) === outlineOf(b)) {
    if (a.kind === "window" && b.kind === "window")
      return { ...a, steps: a.steps.map((counts, step) => added(counts, b.steps[step]!)) };
    if (a.kind === "decayed" && b.kind === "decayed") return { ...a, sums: added(a.sums, b.sums) };
  }
  throw new ArgumentError(`addCounts: ${outlineOf(a)}, and ${outlineOf(b)}; add memories of the same steps`);
};
