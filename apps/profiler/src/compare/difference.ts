import type { Times } from "@skein/report";

/** How two measured times differ. */
export interface Difference {
  readonly before: Times;
  readonly after: Times;
  /** After over before, less 1: −0.1 is a tenth less. */
  readonly relative: number;
  /** Chance that medians of equal things lie so far apart, by a normal distribution of medians; 1 where nothing scatters and nothing differs. */
  readonly probability: number;
}

/** A normal distribution's standard deviation over its median absolute deviation, and the standard error of its median over that of its mean. */
const deviationOfMad = 1.4826;
const medianOverMean = 1.2533;

/** Standard error of a median, by the spread of its samples. */
const medianError = ({ mad, n }: Times): number => (medianOverMean * deviationOfMad * mad) / Math.sqrt(n);

/** The complementary error function, to 1.2 · 10⁻⁷ of itself. Source: Press et al., *Numerical Recipes*, rational Chebyshev fit. */
const complementaryError = (x: number): number => {
  const t = 1 / (1 + x / 2);
  const coefficients = [
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277,
  ];
  const polynomial = coefficients.reduceRight((sum, coefficient) => sum * t + coefficient, 0);
  return t * Math.exp(-x * x + polynomial);
};

/** Compare two medians: |a − b| beside the standard errors of both. */
export const differenceOf = (before: Times, after: Times): Difference => {
  const error = Math.hypot(medianError(before), medianError(after));
  const apart = Math.abs(after.median - before.median);
  const probability = apart === 0 ? 1 : error === 0 ? 0 : complementaryError(apart / error / Math.SQRT2);
  return {
    before,
    after,
    relative: before.median === 0 ? (after.median === 0 ? 0 : Infinity) : after.median / before.median - 1,
    probability,
  };
};

/**
 * Say which of many differences stand, so that with the given chance none of them is luck: Holm's rule, which takes the least probable first and asks of
 * each α over those that are left.
 *
 * Source: Holm 1979, Scandinavian Journal of Statistics 6.
 */
export const significant = (probabilities: readonly number[], alpha = 0.05): readonly boolean[] => {
  const order = [...probabilities.keys()].sort((a, b) => probabilities[a]! - probabilities[b]!);
  const stands = probabilities.map(() => false);
  for (const [rank, index] of order.entries()) {
    if (probabilities[index]! > alpha / (probabilities.length - rank)) break;
    stands[index] = true;
  }
  return stands;
};
