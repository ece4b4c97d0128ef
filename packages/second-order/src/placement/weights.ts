import { ArgumentError } from "@skein/tensor-core";

/**
 * Checks the weights (costs of layers or factors) given to a planner. Throws ArgumentError if there are no weights, or
 * a weight is negative or not finite.
 */
export const checkWeights = (planner: string, weights: readonly number[]): void => {
  if (weights.length === 0) throw new ArgumentError(`${planner}: no weights were given; give at least one`);
  for (const [i, weight] of weights.entries())
    if (!(weight >= 0 && Number.isFinite(weight)))
      throw new ArgumentError(`${planner}: weight ${i} is ${weight}; weights must be finite and not negative`);
};

/** Throws ArgumentError if a number of ranks is not a positive integer. */
export const checkNumRanks = (planner: string, numRanks: number): void => {
  if (!Number.isInteger(numRanks) || numRanks < 1)
    throw new ArgumentError(`${planner}: numRanks is ${numRanks}; use a whole number from 1`);
};
