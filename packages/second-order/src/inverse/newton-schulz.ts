import {
  add,
  ArgumentError,
  broadcastTo,
  formatShape,
  matmul,
  multiply,
  rsqrt,
  ShapeError,
  square,
  sum,
  swapDims,
  type Tensor,
} from "@skein/tensor-core";
import { identityMatrix } from "../matrices.ts";

/** Coefficients a, b, c of `p(x) = a·x + b·x³ + c·x⁵`, applied to the singular values in each step. */
export type QuinticCoefficients = readonly [a: number, b: number, c: number];

/**
 * Coefficients of Muon. The quintic is steep at 0, so that small singular values grow fast. Near 1, singular values do
 * not converge, but stay within [0.68, 1.14].
 *
 * Source: K. Jordan 2024, "Muon".
 */
export const muonCoefficients: QuinticCoefficients = [3.4445, -4.775, 2.0315];

export interface NewtonSchulzOptions {
  /** Number of iterations. Default: 5. */
  readonly steps?: number;
  /** Coefficients of the quintic. Default: `muonCoefficients`. */
  readonly coefficients?: QuinticCoefficients;
}

/**
 * Approximates the nearest matrix with orthonormal rows or columns: the singular vectors of `x`, with singular values
 * near 1. Needs only matrix products: `X ← x/‖x‖`, then `steps` times `G = XXᵀ`, `X ← PX` with `P = aI + bG + cG²`. The
 * result for a zero matrix is zero.
 *
 * For a matrix that is much longer than wide, the iterations use only its Gram matrix, `Q ← PQ`, `G ← PGP`, and the
 * result is `QX`. The Gram matrix is sufficient, because all P are polynomials of the same matrix. Rounding of G
 * affects only singular values below 10⁻³ of the largest singular value. After five iterations, such small values are
 * at most as large as the result for a singular value of 10⁻³.
 *
 * @param x f32 [..., n, m], for example [512, 2048].
 * @returns f32 of the same shape.
 * @throws ShapeError if `x` is a vector. Cost per matrix, with r = min(n, m) and s = max(n, m): the minimum of steps ·
 * (4r²·s + 2r³) and 4r²·s + (8 · steps − 6) · r³ flops.
 * @example
 * ```ts
 * const orthogonal = await evaluate(newtonSchulz, referenceBackend())(NdArray.from([3, 0, 0, 5], [2, 2]));
 * console.log(orthogonal.toNumbers().map(Math.round)); // [1, 0, 0, 1]
 * ```
 * Source: Björck and Bowie 1971 for the iteration; K. Jordan 2024 for the quintic.
 */
export const newtonSchulz = (
  x: Tensor,
  { steps = 5, coefficients: [a, b, c] = muonCoefficients }: NewtonSchulzOptions = {},
): Tensor => {
  if (x.rank < 2)
    throw new ShapeError("newtonSchulz", `${formatShape(x.shape)} is not a matrix; give [..., n, m], or reshape it`);
  if (!Number.isInteger(steps) || steps < 1)
    throw new ArgumentError(`newtonSchulz: steps is ${steps}; use a whole number from 1`);
  const [n, m] = x.shape.slice(-2) as [number, number];
  if (n > m) return swapDims(newtonSchulz(swapDims(x, -1, -2), { steps, coefficients: [a, b, c] }), -1, -2);
  const norm2 = sum(square(x), { dims: [-2, -1], keepDims: true });
  let result = multiply(x, rsqrt(add(norm2, tiny)));
  let gram = matmul(result, result, { transposeB: true });
  /** Returns the polynomial P of the Gram matrix without its constant term, `P − aI`. */
  const rest = (): Tensor => add(multiply(gram, b), multiply(matmul(gram, gram), c));
  if (!isShorterOnGram(n, m, steps)) {
    for (let step = 1; ; step++) {
      result = add(multiply(result, a), matmul(rest(), result));
      if (step === steps) return result;
      gram = matmul(result, result, { transposeB: true });
    }
  }
  const identity = broadcastTo(identityMatrix(n), gram.shape);
  let product: Tensor | undefined;
  for (let step = 1; ; step++) {
    const p = add(multiply(identity, a), rest());
    product = product === undefined ? p : matmul(p, product);
    if (step === steps) return matmul(product, result);
    gram = matmul(p, matmul(gram, p));
  }
};

/** Whether the iteration on the Gram matrix needs fewer flops than the iteration on the matrix itself. */
const isShorterOnGram = (r: number, s: number, steps: number): boolean =>
  4 * s + (8 * steps - 6) * r < steps * (4 * s + 2 * r);

/** Smallest normal f32. Prevents a division by zero for a zero matrix, and changes no other result. */
const tiny = 2 ** -126;
