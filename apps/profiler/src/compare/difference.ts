import type { Times } from "@skein/report";
import { studentTail } from "./student-tail.ts";

/** How two measured times differ. */
export interface Difference {
  readonly before: Times;
  readonly after: Times;
  /** After over before, less 1: −0.1 is a tenth less. */
  readonly relative: number;
  /** Chance that medians of equal things lie so far apart; 1 where nothing differs, or a single sample cannot tell. */
  readonly probability: number;
}

/**
 * A normal distribution's standard deviation over its median absolute deviation, and the standard error of its median
 * over that of its mean.
 */
const deviationOfMad = 1.4826;
const medianOverMean = 1.2533;
/**
 * The part of what a standard deviation tells of a spread that a median absolute deviation of as many values does.
 * Source: Rousseeuw and Croux 1993.
 */
const efficiencyOfMad = 0.37;

interface Uncertain {
  /** Standard error of a median. */
  readonly error: number;
  /** Degrees of freedom of that error, which is itself found from few values. */
  readonly degrees: number;
}

/** By the spread of the samples, of which neighbours may be alike: then they are worth fewer. */
const uncertaintyOf = ({ mad, n, effectiveN = n }: Times): Uncertain => ({
  error: (medianOverMean * deviationOfMad * mad) / Math.sqrt(effectiveN),
  degrees: Math.max(1, efficiencyOfMad * (effectiveN - 1)),
});

/**
 * Compare two medians by Welch's test, with errors from median absolute deviations, which pauses do not move, and as
 * many samples as they are worth where neighbours are alike. Of a single sample nothing can be said. What differs
 * between runs as a whole, such as memory or clock rate, is no part of it.
 *
 * Source: Welch 1947, Biometrika 34 (degrees of freedom of two unequal errors).
 */
export const differenceOf = (before: Times, after: Times): Difference => {
  const [one, other] = [uncertaintyOf(before), uncertaintyOf(after)];
  const error = Math.hypot(one.error, other.error);
  const apart = Math.abs(after.median - before.median);
  const degrees = error ** 4 / (one.error ** 4 / one.degrees + other.error ** 4 / other.degrees);
  const unknown = apart === 0 || before.n < 2 || after.n < 2;
  return {
    before,
    after,
    relative: before.median === 0 ? (after.median === 0 ? 0 : Infinity) : after.median / before.median - 1,
    probability: unknown ? 1 : error === 0 ? 0 : studentTail(apart / error, degrees),
  };
};

/**
 * Say which of many differences stand, so that with the given chance none of them is luck: Holm's rule, which takes the
 * least probable first and asks of each α over those that are left.
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
