/** Loss of a step, and the learning rate of the update that came after it. */
export interface RatedLoss {
  readonly rate: number;
  readonly loss: number;
}

/** A rate, with the smoothed loss there. */
export interface SmoothedLoss extends RatedLoss {
  readonly smoothed: number;
}

/** What the losses of a range test say. */
export interface RateSuggestion {
  /** The smaller of the two rates below. */
  readonly rate: number;
  /** Where the smoothed loss falls fastest over the logarithm of the rate. */
  readonly steepest: number;
  /** Where it is least. */
  readonly least: number;
}

/** What a loss counts in the mean of the step next to it: of some hundred steps, single batches scatter too much. */
const smoothing = 0.9;

/** The test is over once the smoothed loss is so many times its least. */
const divergence = 4;

/** From its least loss on a run is unstable; a rate that trains stays well below, by the rule of thumb tenfold. */
const belowLeast = 10;

/** Follows the loss of a range test, step by step. */
export class LossCurve {
  private readonly losses: RatedLoss[] = [];
  private mean = 0;
  private least = Number.POSITIVE_INFINITY;

  get points(): readonly RatedLoss[] {
    return this.losses;
  }

  /**
   * Take the next step.
   *
   * @returns whether the loss has left for good: its running mean is four times the least of these, or it is no number.
   */
  add({ rate, loss }: RatedLoss): boolean {
    if (!Number.isFinite(loss)) return true;
    this.losses.push({ rate, loss });
    this.mean = smoothing * this.mean + (1 - smoothing) * loss;
    const smoothed = this.mean / (1 - smoothing ** this.losses.length); // as if there had been no zero before
    this.least = Math.min(this.least, smoothed);
    return this.least > 0 && smoothed > divergence * this.least;
  }
}

/**
 * Each loss with the mean of all of them, those near it counting most, on both sides alike: a running mean would say
 * late what the loss does, and so of too large a rate. What has diverged counts as four times the first loss.
 *
 * Cost: O(steps²).
 */
export const smoothLosses = (points: readonly RatedLoss[]): SmoothedLoss[] => {
  const first = points[0]?.loss ?? 0;
  const most = first > 0 ? divergence * first : Number.POSITIVE_INFINITY;
  return points.map((point, at) => {
    let [sum, weights] = [0, 0];
    for (const [i, { loss }] of points.entries()) {
      const weight = smoothing ** (2 * Math.abs(i - at)); // two sides: each reaches half as far
      sum += weight * Math.min(most, loss);
      weights += weight;
    }
    return { ...point, smoothed: sum / weights };
  });
};

/** Steps on either side that a slope is laid through. */
const reach = 2;

/** Slope of the smoothed loss over ln(rate) at a point: of the line of least squares through it and its neighbours. */
const slopeAt = (points: readonly SmoothedLoss[], at: number): number => {
  const near = points.slice(Math.max(0, at - reach), at + reach + 1);
  const xs = near.map(({ rate }) => Math.log(rate));
  const [x, y] = [xs, near.map(({ smoothed }) => smoothed)].map(
    (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
  ) as [number, number];
  const spread = xs.reduce((sum, value) => sum + (value - x) ** 2, 0);
  return near.reduce((sum, { smoothed }, i) => sum + (xs[i]! - x) * (smoothed - y), 0) / spread;
};

/**
 * By how much the losses of single steps scatter, told by their differences, which a slow fall hardly changes. The
 * middle one, so that a few jumps do not count; scaled as for a normal distribution.
 */
const scatterOf = (points: readonly RatedLoss[]): number => {
  const jumps = points
    .slice(1)
    .map(({ loss }, i) => Math.abs(loss - points[i]!.loss))
    .toSorted((a, b) => a - b);
  return (jumps[Math.floor(jumps.length / 2)] ?? 0) / (0.6745 * Math.SQRT2);
};

/**
 * Suggest a learning rate from a range test: where the smoothed loss falls fastest over ln(rate), but no more than a
 * tenth of the rate where it is least. Only rates up to the least loss count.
 *
 * On a quadratic whose directions are all as steep it is below 2/λ, where descent diverges. One steep direction among
 * many flat ones is seen late, by a test whose rate grows: there it was up to 2.6 times that bound.
 *
 * @returns undefined where the smoothed loss has not fallen by more than single losses scatter, which is four of its
 * own deviations, or there are fewer than 10 steps.
 *
 * Source: Smith 2017, arXiv 1506.01186 (the test); the steepest descent and the tenth are those of fastai's finder.
 */
export const suggestRate = (losses: readonly RatedLoss[]): RateSuggestion | undefined => {
  if (losses.length < 10) return undefined;
  const points = smoothLosses(losses);
  const least = points.reduce((best, { smoothed }, i) => (smoothed < points[best]!.smoothed ? i : best), 0);
  const fall = points[0]!.smoothed - points[least]!.smoothed;
  if (fall <= scatterOf(losses.slice(0, least + 1))) return undefined;
  const slopes = points.slice(0, least + 1).map((_, at) => slopeAt(points, at));
  const steepest = slopes.indexOf(Math.min(...slopes));
  const rates = { steepest: points[steepest]!.rate, least: points[least]!.rate };
  return { rate: Math.min(rates.steepest, rates.least / belowLeast), ...rates };
};
