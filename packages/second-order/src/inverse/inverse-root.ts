import {
  add,
  ArgumentError,
  eigh,
  equal,
  expandDims,
  formatShape,
  matmul,
  maximum,
  multiply,
  power,
  reduceMax,
  ShapeError,
  type Tensor,
  where,
} from "@skein/tensor-core";

export interface InverseRootOptions {
  /** Exponent p of the root A^(−1/p), above 0. */
  readonly p: number;
  /** Number added to the eigenvalues, relative to the largest eigenvalue. Default: 10⁻⁶. */
  readonly ridge?: number;
}

/**
 * Computes `A^(−1/p)` of symmetric positive semi-definite matrices from their eigenvalues:
 * `Q (Λ + ridge · max λ)^(−1/p) Qᵀ`. The result for a zero matrix is the identity.
 *
 * @param a f32 [..., n, n]; only the lower triangles are read.
 * @returns f32 [..., n, n]
 * @throws ShapeError if a matrix is not square; ArgumentError if p is not positive and finite.
 * Cost: about 9n³ flops.
 * @example
 * ```ts
 * const root = (a: Tensor) => inverseRoot(a, { p: 2 });
 * const result = await evaluate(root, referenceBackend())(NdArray.from([4, 0, 0, 0.25], [2, 2]));
 * console.log(result.toNumbers().map((value) => value.toFixed(2))); // ['0.50', '0.00', '0.00', '2.00']
 * ```
 */
export const inverseRoot = (a: Tensor, { p, ridge = 1e-6 }: InverseRootOptions): Tensor => {
  if (a.rank < 2 || a.shape.at(-2) !== a.shape.at(-1))
    throw new ShapeError("inverseRoot", `${formatShape(a.shape)} is not square; give [..., n, n]`);
  if (!(p > 0 && p < Infinity)) throw new ArgumentError(`inverseRoot: p is ${p}; use a positive number, such as 4`);
  const { values, vectors } = eigh(a);
  const greatest = maximum(reduceMax(values, { dims: -1, keepDims: true }), 0);
  // Eigenvalues of a second moment are below 0 only because of rounding.
  const raised = add(maximum(values, 0), multiply(greatest, ridge));
  const scales = where(equal(raised, 0), 1, power(where(equal(raised, 0), 1, raised), -1 / p));
  return matmul(multiply(vectors, expandDims(scales, { dims: -2 })), vectors, { transposeB: true });
};
