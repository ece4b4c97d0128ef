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
  /** Which root: A^(−1/p). A power of two. */
  readonly p: number;
  /** Added to the diagonal, as a share of a bound of the greatest eigenvalue. Default: 10⁻⁶. */
  readonly ridge?: number;
  /** Steps of the iteration. Default: 30, enough for a ridge of 10⁻⁶. */
  readonly steps?: number;
}

const overMatrix = { dims: [-2, -1], keepDims: true } as const;

/** A bound of the greatest eigenvalue: the smaller of two norms, at most √n times too large. [..., 1, 1] */
const eigenvalueBound = (a: Tensor): Tensor =>
  minimum(
    sqrt(sum(square(a), overMatrix)),
    reduceMax(sum(absolute(a), { dims: -1, keepDims: true }), { dims: -2, keepDims: true }),
  );

/**
 * `A^(−1/p)` of symmetric positive semi-definite matrices, by Newton's iteration on the root and on `M = X^p A`
 * together: `T = ((p + 1)I − M)/p`, `X ← XT`, `M ← T^p M`, until M is I. Matrix products alone, so it runs everywhere.
 *
 * `inverseRoot` is faster where eigenvectors are: 20 times on the CPU.
 *
 * A is scaled first, so that its size does not count, and gets a ridge on its diagonal. A step after which M is further
 * from I than before is not made: rounding has the last word then. A matrix of zeros gives that of `ridge = 1`.
 *
 * @param a f32 [..., n, n]
 * @returns f32 [..., n, n]
 * @throws ShapeError for what is not square; ArgumentError for a root that is no power of two.
 * Cost: steps · (2 + log₂ p) products, 2n³ flops each.
 * Source: Iannazzo 2006, doi 10.1137/050624790; as used by Anil et al. 2020, arXiv 2002.09018.
 */
export const newtonInverseRoot = (a: Tensor, { p, ridge = 1e-6, steps = 30 }: NewtonInverseRootOptions): Tensor => {
  const n = a.shape.at(-1)!;
  if (a.rank < 2 || a.shape.at(-2) !== n)
    throw new ShapeError("newtonInverseRoot", `${formatShape(a.shape)} holds no square matrices; give [..., n, n]`);
  if (!Number.isInteger(p) || p < 1 || !Number.isInteger(Math.log2(p)))
    throw new ArgumentError(`newtonInverseRoot: p is ${p}; use a power of two, such as 2 or 4`);
  const identity = broadcastTo(identityMatrix(n), a.shape);
  const bound = eigenvalueBound(a);
  const isZero = equal(bound, 0);
  const scaled = where(isZero, identity, divide(a, where(isZero, 1, bound))); // eigenvalues up to 1
  // Eigenvalues of M within (0, (p + 1)/2], where the iteration contracts.
  const start = (p + 1) / 2;
  let m = multiply(add(scaled, multiply(identity, ridge)), start / (1 + ridge));
  let x = multiply(identity, (start / (1 + ridge)) ** (1 / p));
  // Σ(1 − μ)² over the eigenvalues μ of M, which after the first step are at most 1 and only rise.
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
