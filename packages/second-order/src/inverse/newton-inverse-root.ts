import {
  absolute,
  add,
  ArgumentError,
  broadcastTo,
  divide,
  equal,
  formatShape,
  less,
  matmul,
  minimum,
  multiply,
  power,
  reduceMax,
  ShapeError,
  sqrt,
  square,
  subtract,
  sum,
  type Tensor,
  where,
} from "@skein/tensor-core";
import { identityMatrix } from "../matrices.ts";

export interface NewtonInverseRootOptions {
  /** Exponent p of the root A^(−1/p), a power of two. */
  readonly p: number;
  /** Number added to the diagonal, relative to an upper bound of the largest eigenvalue. Default: 10⁻⁶. */
  readonly ridge?: number;
  /** Number of iterations. Default: 30, which suffices for a ridge of 10⁻⁶. */
  readonly steps?: number;
}

const overMatrix = { dims: [-2, -1], keepDims: true } as const;

/**
 * Returns an upper bound of the largest eigenvalue, at most √n times too large, [..., 1, 1]: the smaller of two norms.
 */
const eigenvalueBound = (a: Tensor): Tensor =>
  minimum(
    sqrt(sum(square(a), overMatrix)),
    reduceMax(sum(absolute(a), { dims: -1, keepDims: true }), { dims: -2, keepDims: true }),
  );

/**
 * Computes `A^(−1/p)` of symmetric positive semi-definite matrices with a coupled Newton iteration for the root and for
 * `M = X^p A`: `T = ((p + 1)I − M)/p`, `X ← XT`, `M ← T^p M`, until M is I. Needs only matrix products, so it runs on
 * every backend.
 *
 * `inverseRoot` is faster on backends with eigenvectors, 20 times on the CPU.
 *
 * A is first scaled by an upper bound of its eigenvalues, and a ridge is added to its diagonal. An iteration that
 * increases the distance of M from I is rejected, because rounding then dominates. A zero matrix is replaced by the
 * identity.
 *
 * @param a f32 [..., n, n]
 * @returns f32 [..., n, n]
 * @throws ShapeError if a matrix is not square; ArgumentError if p is not a power of two.
 * Cost: steps · (2 + log₂ p) products, 2n³ flops each.
 * @example
 * ```ts
 * const root = (a: Tensor) => newtonInverseRoot(a, { p: 2 });
 * const result = await evaluate(root, referenceBackend())(NdArray.from([4, 0, 0, 0.25], [2, 2]));
 * console.log(result.toNumbers().map((value) => value.toFixed(2))); // ['0.50', '0.00', '0.00', '2.00']
 * ```
 * Source: Iannazzo 2006, doi 10.1137/050624790; as used by Anil et al. 2020, arXiv 2002.09018.
 */
export const newtonInverseRoot = (a: Tensor, { p, ridge = 1e-6, steps = 30 }: NewtonInverseRootOptions): Tensor => {
  const n = a.shape.at(-1)!;
  if (a.rank < 2 || a.shape.at(-2) !== n)
    throw new ShapeError("newtonInverseRoot", `${formatShape(a.shape)} is not square; give [..., n, n]`);
  if (!Number.isInteger(p) || p < 1 || !Number.isInteger(Math.log2(p)))
    throw new ArgumentError(`newtonInverseRoot: p is ${p}; use a power of two, such as 2 or 4`);
  const identity = broadcastTo(identityMatrix(n), a.shape);
  const bound = eigenvalueBound(a);
  const isZero = equal(bound, 0);
  const scaled = where(isZero, identity, divide(a, where(isZero, 1, bound))); // eigenvalues up to 1
  // Eigenvalues of M are in (0, (p + 1)/2], where the iteration contracts.
  const start = (p + 1) / 2;
  let m = multiply(add(scaled, multiply(identity, ridge)), start / (1 + ridge));
  let x = multiply(identity, (start / (1 + ridge)) ** (1 / p));
  // Returns Σ(1 − μ)² over the eigenvalues μ of M. After the first iteration, μ ≤ 1, and μ only increases.
  const distanceOf = (matrix: Tensor): Tensor => sum(square(subtract(matrix, identity)), overMatrix);
  let distance = distanceOf(m);
  for (let step = 0; step < steps; step++) {
    const t = subtract(multiply(identity, (p + 1) / p), multiply(m, 1 / p));
    let tp = t;
    for (let done = 1; done < p; done *= 2) tp = matmul(tp, tp);
    const nextM = matmul(tp, m);
    const nextDistance = distanceOf(nextM);
    const improves = less(nextDistance, distance);
    x = where(broadcastTo(improves, x.shape), matmul(x, t), x);
    m = where(broadcastTo(improves, m.shape), nextM, m);
    distance = minimum(nextDistance, distance);
  }
  return multiply(x, where(isZero, 1, power(where(isZero, 1, bound), -1 / p)));
};
