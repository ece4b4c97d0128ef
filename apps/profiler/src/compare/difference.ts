import type { Times } from "@skein/report";
import { studentTail } from "./student-tail.ts";

/** Difference between two measured times. */
export interface Difference {
  readonly before: Times;
  readonly after: Times;
  /** Relative change, after / before − 1: −0.1 means that the time decreased by a tenth. */
  readonly relative: number;
  /**
   * p-value: probability of a difference between the medians of at least this size if the true times are equal. 1 if
   * the medians are equal, or if a report has a single sample.
   */
  readonly probability: number;
}

/**
 * Factors for a normal distribution: standard deviation divided by median absolute deviation, and standard error of the
 * median divided by standard error of the mean.
 */
const deviationOfMad = 1.4826;
const medianOverMean = 1.2533;
/**
 * Relative efficiency of the median absolute deviation as an estimate of spread, compared with the standard deviation.
 *
 * Source: Rousseeuw and Croux 1993.
 */
const efficiencyOfMad = 0.37;

interface MedianError {
  /** Standard error of a median, in seconds. */
  readonly error: number;
  /** Degrees of freedom of the standard error, for Welch's test. Smaller for fewer independent measurements. */
  readonly degrees: number;
}

/**
 * Computes the standard error of a median from the spread of the samples. Correlation between consecutive samples
 * reduces the effective number of samples.
 */
const uncertaintyOf = ({ mad, n, effectiveN = n }: Times): MedianError => ({
  error: (medianOverMean * deviationOfMad * mad) / Math.sqrt(effectiveN),
  degrees: Math.max(1, efficiencyOfMad * (effectiveN - 1)),
});

/**
 * Compares two medians with Welch's test. Standard errors are computed from median absolute deviations, which are
 * robust against pauses, and from the effective number of samples. With a single sample the probability is 1.
 * Differences between whole runs, such as memory layout or clock rate, are not covered.
 *
 * Source: Welch 1947, Biometrika 34 (degrees of freedom of two unequal errors).
 */
export const differenceOf = (before: Times, after: Times): Difference => {
  const [one, other] = [uncertaintyOf(before), uncertaintyOf(after)];
  const error = Math.hypot(one.error, other.error);
  const difference = Math.abs(after.median - before.median);
  const degrees = error ** 4 / (one.error ** 4 / one.degrees + other.error ** 4 / other.degrees);
  const unknown = difference === 0 || before.n < 2 || after.n < 2;
  return {
    before,
    after,
    relative: before.median === 0 ? (after.median === 0 ? 0 : Infinity) : after.median / before.median - 1,
    probability: unknown ? 1 : error === 0 ? 0 : studentTail(difference / error, degrees),
  };
};

/**
 * Decides which differences are significant, with family-wise error rate `alpha`. Holm's rule: p-values in ascending
 * order are compared with `alpha` divided by the number of remaining tests.
 *
 * Source: Holm 1979, Scandinavian Journal of Statistics 6.
 */
export const significant = (probabilities: readonly number[], alpha = 0.05): readonly boolean[] => {
  const order = [...probabilities.keys()].sort((a, b) => probabilities[a]! - probabilities[b]!);
  const isSignificant = probabilities.map(() => false);
  for (const [rank, index] of order.entries()) {
    if (probabilities[index]! > alpha / (probabilities.length - rank)) break;
    isSignificant[index] = true;
  }
  return isSignificant;
};
