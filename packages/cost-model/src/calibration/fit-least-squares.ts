import { ArgumentError } from "@skein/tensor-core";
import { cholesky, solveLower, solveTransposed, type Vector } from "../cholesky.ts";

export interface LeastSquaresOptions {
  /**
   * Step of the finite differences, relative to the size of each parameter. Models with kinks need a larger step.
   * Default: 1e-5.
   */
  readonly relativeStep?: number;
  /**
   * Convergence tolerance: the fit ends when no parameter changes by more than this fraction, and no step reduces the
   * sum of squares by more than this fraction. Default: 1e-9.
   */
  readonly tolerance?: number;
  /** Maximum number of iterations. Default: 200. */
  readonly maxIterations?: number;
}

/** Fitted parameters with their uncertainty. */
export interface LeastSquaresFit {
  readonly parameters: readonly number[];
  /**
   * Standard error of each parameter: √diag(s² · (JᵀJ)⁻¹). NaN if the number of samples equals the number of
   * parameters, because no degrees of freedom are left.
   */
  readonly standardErrors: readonly number[];
  /**
   * Residual standard deviation s: √(Σ r² / (samples − parameters)), in the unit of the residuals. NaN if the number of
   * samples equals the number of parameters.
   */
  readonly residual: number;
  /** Whether the fit reached `tolerance` before `maxIterations`. */
  readonly converged: boolean;
}

type Residuals = (parameters: Vector) => Vector;

const sumOfSquares = (values: Vector): number => values.reduce((sum, value) => sum + value * value, 0);

/**
 * Returns the scale of each parameter for steps and tolerances: its absolute value, but at least a hundredth of its
 * start value, because a parameter may converge to 0.
 */
const sizesOf = (at: Vector, start: Vector): Vector =>
  at.map((value, k) => Math.max(Math.abs(value), (Math.abs(start[k]!) || 1) / 100));

/** Computes the Jacobian ∂r/∂p by central differences, one row per parameter. */
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
 * Returns the scale of each parameter, computed from the diagonal of JᵀJ, so that the units and sizes of parameters do
 * not matter.
 *
 * @throws ArgumentError if a parameter does not change the residuals, or a derivative is not finite.
 */
const scalesOf = (normal: readonly Vector[]): Vector =>
  normal.map((row, k) => {
    if (row[k]! > 0 && row[k]! < Infinity) return Math.sqrt(row[k]!);
    throw new ArgumentError(
      `parameter ${k} of ${normal.length} ${row[k] === 0 ? "changes no residual" : `has derivatives that are not finite (${row[k]})`}; leave the parameter out, or use another start`,
    );
  });

const scaledFactor = (normal: readonly Vector[], scales: Vector, damping: number): readonly Vector[] =>
  cholesky(normal.map((row, i) => row.map((value, j) => value / (scales[i]! * scales[j]!) + (i === j ? damping : 0))));

const standardErrorsOf = (normal: readonly Vector[], scales: Vector, residual: number): Vector => {
  const factor = scaledFactor(normal, scales, 0);
  return scales.map((scale, k) => {
    const unit = scales.map((_, i) => (i === k ? 1 : 0));
    const variance = sumOfSquares(solveLower(factor, unit));
    // If a parameter depends on the other parameters, its pivot is 0 in exact arithmetic, and about 1e-16 with
    // rounding. Its variance is then above 1e12.
    if (!(variance < 1e12))
      throw new ArgumentError(
        `parameter ${k} of ${scales.length} cannot be separated from the others with these samples; leave a parameter out, or measure samples in which they differ`,
      );
    return (residual * Math.sqrt(variance)) / scale;
  });
};

/**
 * Finds the parameters that minimize Σ r². A residual r is the model value minus the measured value, divided by the
 * expected error: (model − t) / t for times with a relative error. The method is Gauss–Newton with a Jacobian J from
 * central differences. If a step does not reduce the sum, the fit repeats it with damping (Levenberg–Marquardt with
 * Marquardt's scaling by the diagonal of JᵀJ). The fit finds the nearest local minimum, and rejects steps to parameters
 * whose residuals are not finite. To keep a parameter above 0, fit its logarithm; its standard error is then a relative
 * error.
 *
 * The units of parameters do not matter, except that a start of exactly 0 is treated as a parameter of size 1.
 *
 * Cost: (2 · parameters + 1) calls of `model` per iteration.
 *
 * @param model Function that returns the residuals for given parameters. The number of residuals must not change.
 * @throws ArgumentError if there are fewer samples than parameters, the residuals at the start are not finite, an
 * option is invalid, or the samples do not determine the parameters.
 * @example
 * ```ts
 * const [xs, ys] = [[0, 1, 2], [1, 3, 5]];
 * const residuals = ([a = 0, b = 0]: readonly number[]) => xs.map((x, i) => a + b * x - ys[i]!);
 * console.log(fitLeastSquares(residuals, [0, 0]).parameters.map((value) => Math.round(value))); // [1, 2]
 * ```
 * Source: Marquardt 1963, An algorithm for least-squares estimation of nonlinear parameters, J. Soc. Ind. Appl. Math.
 * 11.
 */
export const fitLeastSquares = (
  model: Residuals,
  start: Vector,
  options: LeastSquaresOptions = {},
): LeastSquaresFit => {
  const { relativeStep = 1e-5, tolerance = 1e-9, maxIterations = 200 } = options;
  for (const [name, value] of Object.entries({ relativeStep, tolerance, maxIterations }))
    if (!(value > 0 && Number.isFinite(value)))
      throw new ArgumentError(`fitLeastSquares: ${name} is ${value}, but must be above 0 and finite`);
  let parameters = start;
  let current = model(start);
  const [numSamples, numParameters] = [current.length, start.length];
  const residuals: Residuals = (at) => {
    const values = model(at);
    if (values.length === numSamples) return values;
    throw new ArgumentError(
      `fitLeastSquares: the model returned ${values.length} residuals for parameters [${at.join(", ")}], but ${numSamples} for the start; return the same number of residuals for all parameters`,
    );
  };
  if (numSamples < numParameters || numParameters === 0)
    throw new ArgumentError(
      `${numSamples} samples for ${numParameters} parameters; a fit needs at least one parameter, and at least as many samples as parameters`,
    );
  let sum = sumOfSquares(current);
  if (!Number.isFinite(sum))
    throw new ArgumentError(
      `the sum of squares is ${sum} at the start [${start.join(", ")}]; use a start at which every residual is finite`,
    );
  const stepsAt = (at: Vector): Vector => sizesOf(at, start).map((size) => relativeStep * size);
  let [damping, converged] = [1e-3, sum === 0];
  for (let iteration = 0; iteration < maxIterations && !converged; iteration++) {
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
