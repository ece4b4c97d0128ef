/** A point of a range test: loss of a step, and learning rate of the update that follows this loss. */
export interface RatedLoss {
  readonly rate: number;
  readonly loss: number;
}

/** A point of a range test with its smoothed loss. */
export interface SmoothedLoss extends RatedLoss {
  readonly smoothed: number;
}

/** Result of a range test. */
export interface RateSuggestion {
  /** Suggested learning rate: minimum of `steepest` and a tenth of `least`. */
  readonly rate: number;
  /** Learning rate at which the slope of the smoothed loss over ln(rate) is most negative. */
  readonly steepest: number;
  /** Learning rate at which the smoothed loss is lowest. */
  readonly least: number;
}

/**
 * Weight of earlier losses in smoothing, per step. Losses of single batches are too noisy for a test of some hundred
 * steps.
 */
const smoothing = 0.9;

/** Ratio of the smoothed loss to its minimum at which the test ends. */
const divergence = 4;

/**
 * Minimum ratio of the learning rate with the lowest loss to the suggested learning rate. A run at the rate with the
 * lowest loss would become unstable; as a rule of thumb, a rate ten times lower is usable.
 */
const belowLeast = 10;

/** Records the losses of a range test step by step. */
export class LossCurve {
  private readonly losses: RatedLoss[] = [];
  private mean = 0;
  private least = Number.POSITIVE_INFINITY;

  get points(): readonly RatedLoss[] {
    return this.losses;
  }

  /**
   * Adds the loss of the next step.
   *
   * @returns whether the loss has diverged: the running mean exceeds four times the minimum of the running mean, or the
   * loss is not finite.
   */
  add({ rate, loss }: RatedLoss): boolean {
    if (!Number.isFinite(loss)) return true;
    this.losses.push({ rate, loss });
    this.mean = smoothing * this.mean + (1 - smoothing) * loss;
    const smoothed = this.mean / (1 - smoothing ** this.losses.length); // bias correction for a mean that starts at 0
    this.least = Math.min(this.least, smoothed);
    return this.least > 0 && smoothed > divergence * this.least;
  }
}

/**
 * Smooths losses with a weighted mean over all losses. Weights are symmetric and decrease with distance, because a
 * running mean would lag, and would suggest too large a rate. Each loss is limited to four times the first loss.
 */
export const smoothLosses = (points: readonly RatedLoss[]): SmoothedLoss[] => {
  const first = points[0]?.loss ?? 0;
  const most = first > 0 ? divergence * first : Number.POSITIVE_INFINITY;
  return points.map((point, at) => {
    let [sum, weights] = [0, 0];
    for (const [i, { loss }] of points.entries()) {
      const weight = smoothing ** (2 * Math.abs(i - at)); // two sides, each with half the range
      sum += weight * Math.min(most, loss);
      weights += weight;
    }
    return { ...point, smoothed: sum / weights };
  });
};

/** Number of neighboring points on each side that are included in the fit of a slope. */
const reach = 2;

/**
 * Computes the slope of the smoothed loss over ln(rate) at a point, from a least-squares line through the point and its
 * neighbors.
 */
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
 * Estimates the standard deviation of the noise in losses from differences of consecutive losses, which a slow decrease
 * hardly changes. Uses the median, which is robust against outliers, scaled as for a normal distribution.
 */
const scatterOf = (points: readonly RatedLoss[]): number => {
  const jumps = points
    .slice(1)
    .map(({ loss }, i) => Math.abs(loss - points[i]!.loss))
    .toSorted((a, b) => a - b);
  return (jumps[Math.floor(jumps.length / 2)] ?? 0) / (0.6745 * Math.SQRT2);
};

/**
 * Suggests a learning rate from a range test: the rate at which the smoothed loss decreases fastest over ln(rate), but
 * at most a tenth of the rate with the lowest smoothed loss. Rates above the rate with the lowest loss are ignored.
 *
 * For a quadratic loss with equal curvature λ in all directions, the suggestion is below 2/λ, above which gradient
 * descent diverges. If one direction is steep and many directions are flat, a test with an increasing rate detects the
 * steep direction late, and suggestions up to 2.6 times this bound were measured.
 *
 * @returns undefined if the smoothed loss decreased by at most four standard deviations of the noise, or if there are
 * fewer than 10 steps.
 *
 * Source: Smith 2017, arXiv 1506.01186 (range test); fastai's learning rate finder (steepest descent, and a tenth of
 * the rate with the lowest loss).
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
