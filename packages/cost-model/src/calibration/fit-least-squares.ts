import { ArgumentError } from "@skein/tensor-core";
import { cholesky, solveLower, solveTransposed, type Vector } from "../cholesky.ts";

export interface LeastSquaresOptions {
  /** Share of a parameter by which it is moved to see what changes; larger for models with kinks. Default: 1e-5. */
  readonly relativeStep?: number;
  /** It ends when no parameter moves by more than this share, and no step betters the sum by more. Default: 1e-9. */
  readonly tolerance?: number;
  /** Default: 200. */
  readonly mostIterations?: number;
}

/** Parameters that fit samples best, and how well they are known. */
export interface LeastSquaresFit {
  readonly parameters: readonly number[];
  /** √ of the diagonal of s² · (JᵀJ)⁻¹; NaN with as many samples as parameters, where nothing is left to judge by. */
  readonly standardErrors: readonly number[];
  /** s: √(Σ r² / (samples − parameters)), in the residuals' unit; NaN with as many samples as parameters. */
  readonly residual: number;
  /** Whether it ended by `tolerance`, not by `mostIterations`. */
  readonly converged: boolean;
}

type Residuals = (parameters: Vector) => Vector;

const sumOfSquares = (values: Vector): number => values.reduce((sum, value) => sum + value * value, 0);

/**
 * What steps of a parameter are measured by: its size, but not less than a hundredth of where it began, since it may
 * end at 0.
 */
const sizesOf = (at: Vector, start: Vector): Vector =>
  at.map((value, k) => Math.max(Math.abs(value), (Math.abs(start[k]!) || 1) / 100));

/** ∂r/∂p by central differences, a row per parameter. */
const jacobianAt = (residuals: Residuals, at: Vector, steps: Vector): readonly Vector[] =>
  at.map((value, k) => {
    const step = steps[k]!;
    const above = residuals(at.with(k, value + step));
    const below = residuals(at.with(k, value - step));
    return above.map((one, i) => (one - below[i]!) / (2 * step));
  });

const dot = (a: Vector, b: Vector): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

const normalMatrix = (jacobian: readonly Vector[]): readonly Vector[] =>
  jacobian.map((a) => jacobian.map((b) => dot(a, b)));

/**
 * With each parameter in units of its own column, so that neither its unit nor its size matters.
 *
 * @throws ArgumentError where the samples do not settle all.
 */
const scalesOf = (normal: readonly Vector[]): Vector =>
  normal.map((row, k) => {
    if (row[k]! > 0 && row[k]! < Infinity) return Math.sqrt(row[k]!);
    throw new ArgumentError(
      `parameter ${k} of ${normal.length} ${row[k] === 0 ? "changes no residual" : `gives derivatives that are no numbers (${row[k]})`}; leave it out, or start elsewhere`,
    );
  });

const scaledFactor = (normal: readonly Vector[], scales: Vector, damping: number): readonly Vector[] =>
  cholesky(normal.map((row, i) => row.map((value, j) => value / (scales[i]! * scales[j]!) + (i === j ? damping : 0))));

const standardErrorsOf = (normal: readonly Vector[], scales: Vector, residual: number): Vector => {
  const factor = scaledFactor(normal, scales, 0);
  return scales.map((scale, k) => {
    const unit = scales.map((_, i) => (i === k ? 1 : 0));
    const variance = sumOfSquares(solveLower(factor, unit));
    // Rounding leaves about 1e-16 of what is 0: a parameter that others make up for.
    if (!(variance < 1e12))
      throw new ArgumentError(
        `parameter ${k} of ${scales.length} cannot be told from the others by these samples; leave one out, or measure where they differ`,
      );
    return (residual * Math.sqrt(variance)) / scale;
  });
};

/**
 * Find the parameters with the least Σ r², r being what a model says less what was measured, each in the unit of its
 * error: (model − t) / t for times of which a share is wrong. Gauss–Newton steps, damped where they do not help
 * (Levenberg–Marquardt with Marquardt's scaling by JᵀJ's diagonal), J by central differences. It finds the nearest
 * minimum; a step to where a residual is no number is not taken. For parameters above 0 take their logarithms: then a
 * standard error is a relative one.
 *
 * Units of parameters do not matter, but for a start of exactly 0, which is taken for one of size 1.
 *
 * Cost: (2 · parameters + 1) calls of `model` an iteration.
 *
 * @param model residuals by parameters: as many numbers whatever those are.
 * @throws ArgumentError for fewer samples than parameters, a start at which a residual is no number, options that are
 * none, and parameters that
 *   the samples do not settle.
 *
 * Source: Marquardt 1963, An algorithm for least-squares estimation of nonlinear parameters, J. Soc. Ind. Appl.
 * Math. 11.
 */
export const fitLeastSquares = (
  model: Residuals,
  start: Vector,
  options: LeastSquaresOptions = {},
): LeastSquaresFit => {
  const { relativeStep = 1e-5, tolerance = 1e-9, mostIterations = 200 } = options;
  for (const [name, value] of Object.entries({ relativeStep, tolerance, mostIterations }))
    if (!(value > 0 && Number.isFinite(value)))
      throw new ArgumentError(`fitLeastSquares: ${name} ${value} was given; it must be above 0 and finite`);
  let parameters = start;
  let current = model(start);
  const [numSamples, numParameters] = [current.length, start.length];
  const residuals: Residuals = (at) => {
    const values = model(at);
    if (values.length === numSamples) return values;
    throw new ArgumentError(
      `fitLeastSquares: ${values.length} residuals came of parameters [${at.join(", ")}], ${numSamples} of those it began with; give as many of any`,
    );
  };
  if (numSamples < numParameters || numParameters === 0)
    throw new ArgumentError(
      `${numSamples} samples were given for ${numParameters} parameters; a fit needs a parameter, and as many samples as parameters or more`,
    );
  let sum = sumOfSquares(current);
  if (!Number.isFinite(sum))
    throw new ArgumentError(
      `at the start [${start.join(", ")}] the sum of squares is ${sum}; start where every residual is a number`,
    );
  const stepsAt = (at: Vector): Vector => sizesOf(at, start).map((size) => relativeStep * size);
  let [damping, converged] = [1e-3, sum === 0];
  for (let iteration = 0; iteration < mostIterations && !converged; iteration++) {
    const jacobian = jacobianAt(residuals, parameters, stepsAt(parameters));
    const normal = normalMatrix(jacobian);
    const scales = scalesOf(normal);
    const slope = jacobian.map((row, k) => dot(row, current) / scales[k]!);
    for (let better = false; !better && !converged; ) {
      const factor = scaledFactor(normal, scales, damping);
      const move = solveTransposed(factor, solveLower(factor, slope)).map((value, k) => -value / scales[k]!);
      const next = parameters.map((value, k) => value + move[k]!);
      const tried = residuals(next);
      const triedSum = sumOfSquares(tried);
      better = triedSum < sum;
      const sizes = sizesOf(parameters, start);
      const small = move.every((value, k) => Math.abs(value) <= tolerance * sizes[k]!);
      converged = small || (better && sum - triedSum <= tolerance * sum) || damping > 1e12;
      damping = better ? Math.max(damping / 5, 1e-12) : damping * 4;
      if (better) [parameters, current, sum] = [next, tried, triedSum];
    }
  }
  const normal = normalMatrix(jacobianAt(residuals, parameters, stepsAt(parameters)));
  const residual = numSamples === numParameters ? Number.NaN : Math.sqrt(sum / (numSamples - numParameters));
  return { parameters, standardErrors: standardErrorsOf(normal, scalesOf(normal), residual), residual, converged };
};
