import { cholesky, solveLower, type Vector } from "../cholesky.ts";

/** What a Gaussian process says of one point. */
export interface Prediction {
  readonly mean: number;
  /** Of the function itself, without the noise of a measurement. */
  readonly deviation: number;
}

const dot = (a: Vector, b: Vector): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

/**
 * Correlation of two points: 1 at no distance, smooth enough for a function that can be differentiated twice. Source:
 * Matérn, ν = 5/2.
 */
const matern = (a: Vector, b: Vector, length: number): number => {
  const scaled = (Math.sqrt(5) * Math.hypot(...a.map((value, i) => value - b[i]!))) / length;
  return (1 + scaled + scaled ** 2 / 3) * Math.exp(-scaled);
};

// Points lie in the unit cube and values have deviation 1, so the same few settings serve every function.
const lengths: Vector = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6];
// Share of noise in the variance. Never 0: equal points would make the matrix singular.
const noises: Vector = [1e-6, 1e-4, 1e-2, 0.1, 0.5];

/**
 * How far ln(length) and ln(noise) may stray from what is usual before it costs. With few points the likelihood alone
 * would settle for anything.
 */
const penalty = (length: number, noise: number): number =>
  Math.log(length / 0.3) ** 2 / 2 + Math.log(noise / 1e-2) ** 2 / 50;

/**
 * Fit a Gaussian process with a Matérn 5/2 kernel, equal length in all directions. Length and share of noise are those
 * of a small grid with the largest marginal likelihood and prior; the variance follows from them in closed form.
 *
 * @param points in the unit cube, equal ones allowed. @param values one each.
 * @returns what predicts at any point, in O(points²).
 *
 * Cost: O(points³) for each of 30 settings.
 *
 * Source: Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, algorithm 2.1.
 */
export const fitGaussianProcess = (points: readonly Vector[], values: Vector): ((point: Vector) => Prediction) => {
  const count = values.length;
  const centre = values.reduce((sum, value) => sum + value, 0) / count;
  const spread = Math.sqrt(values.reduce((sum, value) => sum + (value - centre) ** 2, 0) / count) || 1;
  const standard = values.map((value) => (value - centre) / spread);
  const fits = lengths.flatMap((length) =>
    noises.map((noise) => {
      const lower = cholesky(points.map((a, i) => points.map((b, j) => matern(a, b, length) + (i === j ? noise : 0))));
      const whitened = solveLower(lower, standard);
      // As if two values of deviation 1 had been seen before: values that are all equal would leave no variance.
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
      mean: centre + spread * dot(across, whitened),
      deviation: spread * Math.sqrt(variance * Math.max(0, 1 - dot(across, across))),
    };
  };
};
