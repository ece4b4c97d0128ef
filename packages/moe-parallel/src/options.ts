import { ArgumentError } from "@skein/tensor-core";

/** @throws ArgumentError unless each is a whole number from 1. */
export const checkCounts = (fn: string, counts: Readonly<Record<string, number>>): void => {
  for (const [name, value] of Object.entries(counts)) {
    if (!Number.isInteger(value) || value < 1)
      throw new ArgumentError(`${fn}: ${name} is ${String(value)}; use a whole number from 1`);
  }
};

/** Of collectives that tokens travel by: gradients, which have the least unless a job says another, hold none up. */
export const tokenPriority = 3;

/** @throws ArgumentError unless it is one of the four that there are. */
export const checkPriority = (fn: string, priority: number): void => {
  if (!Number.isInteger(priority) || priority < 0 || priority > 3)
    throw new ArgumentError(`${fn}: priority ${priority} is none; use 0 to 3, the greatest goes first`);
};

/** @throws ArgumentError unless it is a finite number above 0. */
export const checkPositive = (fn: string, name: string, value: number, usual: number): void => {
  if (typeof value === "number" && value > 0 && value < Infinity) return;
  throw new ArgumentError(`${fn}: ${name} is ${String(value)}; use a finite number above 0, for example ${usual}`);
};

/** @throws ArgumentError unless it is from 0 to 1. */
export const checkDecay = (fn: string, name: string, value: number): void => {
  if (value >= 0 && value <= 1) return;
  throw new ArgumentError(`${fn}: ${name} is ${String(value)}; a step counts from 0 to 1 of what it did before`);
};

/** @throws ArgumentError where a token would have to choose an expert twice. */
export const checkNumChoices = (fn: string, numChoices: number, numExperts: number): void => {
  checkCounts(fn, { numExperts, numChoices });
  if (numChoices > numExperts)
    throw new ArgumentError(
      `${fn}: ${numChoices} choices of ${numExperts} experts were asked for, but a token takes each expert at most once; use 1 to ${numExperts} choices`,
    );
};
