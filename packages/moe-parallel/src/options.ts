import { ArgumentError } from "@skein/tensor-core";

/** Throws ArgumentError if a value is not a positive integer. */
export const checkCounts = (fn: string, counts: Readonly<Record<string, number>>): void => {
  for (const [name, value] of Object.entries(counts)) {
    if (!Number.isInteger(value) || value < 1)
      throw new ArgumentError(`${fn}: ${name} is ${String(value)}; use a whole number from 1`);
  }
};

/**
 * Default priority of collectives that send tokens: the highest priority, so that gradients do not delay tokens. By
 * default, gradients have the lowest priority.
 */
export const tokenPriority = 3;

/** Throws ArgumentError if a priority is not 0, 1, 2 or 3. */
export const checkPriority = (fn: string, priority: number): void => {
  if (!Number.isInteger(priority) || priority < 0 || priority > 3)
    throw new ArgumentError(`${fn}: priority is ${priority}; use 0 to 3, the highest goes first`);
};

/** Throws ArgumentError unless a value is a finite number above 0. `usual` is the example in the error message. */
export const checkPositive = (fn: string, name: string, value: number, usual: number): void => {
  if (typeof value === "number" && value > 0 && value < Infinity) return;
  throw new ArgumentError(`${fn}: ${name} is ${String(value)}; use a finite number above 0, for example ${usual}`);
};

/** Throws ArgumentError if a value is not in [0, 1]. */
export const checkDecay = (fn: string, name: string, value: number): void => {
  if (value >= 0 && value <= 1) return;
  throw new ArgumentError(`${fn}: ${name} is ${String(value)}; use a number from 0 to 1, for example 0.95`);
};

/** Throws ArgumentError if there are more choices per token than experts. */
export const checkNumChoices = (fn: string, numChoices: number, numExperts: number): void => {
  checkCounts(fn, { numExperts, numChoices });
  if (numChoices > numExperts)
    throw new ArgumentError(
      `${fn}: numChoices is ${numChoices}, but a token chooses each of ${numExperts} experts at most once; use 1 to ${numExperts} choices`,
    );
};
