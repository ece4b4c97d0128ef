import { cholesky, solveLower, type Vector } from "../cholesky.ts";

/** Predicted value of a Gaussian process at one point, with its uncertainty. */
export interface Prediction {
  readonly mean: number;
  /** Standard deviation of the function value, without measurement noise. */
  readonly deviation: number;
}

const dot = (a: Vector, b: Vector): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

/**
 * Returns the correlation of two points, which is 1 at distance 0. The Matérn kernel with ν = 5/2 describes functions
 * that are twice differentiable.
 */
const matern = (a: Vector, b: Vector, length: number): number => {
  const scaled = (Math.sqrt(5) * Math.hypot(...a.map((value, i) => value - b[i]!))) / length;
  return (1 + scaled + scaled ** 2 / 3) * Math.exp(-scaled);
};

// Candidate length scales. They suit every function, because points are in the unit cube and values have standard
// deviation 1.
const lengths: Vector = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6];
// Candidate noise variances, as fractions of the total variance. Never 0, because duplicate points would make the
// matrix singular.
const noises: Vector = [1e-6, 1e-4, 1e-2, 0.1, 0.5];

/**
 * Returns the negative log prior, up to a constant, of the logarithms of a Gaussian process's length scale and noise
 * fraction. With few points, the likelihood without a prior could select extreme values.
 */
const penalty = (length: number, noise: number): number =>
  Math.log(length / 0.3) ** 2 / 2 + Math.log(noise / 1e-2) ** 2 / 50;

/**
 * Fits a Gaussian process with a Matérn 5/2 kernel that has the same length scale in all dimensions. A small grid of
 * length scales and noise fractions is searched for the largest marginal likelihood times prior; the variance follows
 * in closed form.
 *
 * @param points Points in the unit cube; duplicates are allowed.
 * @param values Values of the function, one per point.
 * @returns a function that predicts at any point, in O(points²).
 *
 * Cost: O(points³) for each of 30 settings.
 *
 * Source: Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, algorithm 2.1.
 */
export const fitGaussianProcess = (points: readonly Vector[], values: Vector): ((point: Vector) => Prediction) => {
  const count = values.length;
  const center = values.reduce((sum, value) => sum + value, 0) / count;
  const spread = Math.sqrt(values.reduce((sum, value) => sum + (value - center) ** 2, 0) / count) || 1;
  const standard = values.map((value) => (value - center) / spread);
  const fits = lengths.flatMap((length) =>
    noises.map((noise) => {
      const lower = cholesky(points.map((a, i) => points.map((b, j) => matern(a, b, length) + (i === j ? noise : 0))));
      const whitened = solveLower(lower, standard);
      // The prior adds two values of deviation 1. Without it, equal values would give a variance of 0.
      const variance = (dot(whitened, whitened) + 2) / (count + 2);
      const logDeterminant = 2 * lower.reduce((sum, row, i) => sum + Math.log(row[i]!), 0);
      const score = -((count + 2) * Math.log(variance) + logDeterminant) / 2 - penalty(length, noise);
      return { length, lower, whitened, variance, score };
    }),
  );
  const { length, lower, whitened, variance } = fits.reduce((best, fit) => (fit.score > best.score ? fit : best));
  return (point) => {
    const across = solveLower(
      lower,
      points.map((other) => matern(point, other, length)),
    );
    return {
      mean: center + spread * dot(across, whitened),
      deviation: spread * Math.sqrt(variance * Math.max(0, 1 - dot(across, across))),
    };
  };
};
