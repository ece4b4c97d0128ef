import { ShapeError } from "../errors.ts";
import { emit, emitOne, requireOperands } from "../graph/emit.ts";
import { checkOptions } from "../options.ts";
import type { Tensor } from "../graph/tensor.ts";
import { broadcastShapes, formatShape } from "../shape.ts";
import {
  absolute,
  add,
  cast,
  divide,
  equal,
  greater,
  greaterEqual,
  iota,
  multiply,
  negate,
  subtract,
  where,
} from "./elementwise.ts";
import { matmul } from "./linear.ts";
import { broadcastTo, expandDims, swapDims } from "./movement.ts";
import { reduceMax } from "./reduce.ts";

export interface TriangularSolveOptions {
  /** Whether to read the lower triangle of `l`. If false, the upper triangle is read. */
  readonly lower: boolean;
  /** Whether to solve `lᵀ x = b` instead of `l x = b`. */
  readonly transpose: boolean;
  /** Whether to assume that the diagonal is ones, without reading the diagonal. Default: false. */
  readonly unitDiagonal?: boolean;
}

/**
 * Computes the lower Cholesky factor `l` with `a = l lᵀ`.
 *
 * @param a f32 [..., n, n], symmetric positive definite; only the lower triangle is read.
 * @returns f32 [..., n, n], zero above the diagonal. If a matrix is not positive definite, all entries l[i][j] with i ≥
 * j ≥ p are NaN, where p is the index of the first pivot that is not positive. The columns before p are correct.
 * Cost: n³/3 flops per matrix.
 * @example
 * ```ts
 * const result = await evaluate(cholesky, referenceBackend())(NdArray.from([4, 2, 2, 5], [2, 2]));
 * console.log(result.toNumbers()); // [2, 0, 1, 2]
 * ```
 */
export const cholesky = (a: Tensor): Tensor => emitOne("cholesky", [a]);

/**
 * Solves `l x = b`, or `lᵀ x = b`, for a triangular matrix.
 *
 * @param l f32 [..., n, n]; only the triangle that `lower` selects is read.
 * @param b f32 [..., n, m]. Leading dimensions broadcast as in `add`.
 * @returns f32 [..., n, m].
 * Cost: n²·m flops per matrix.
 * @example
 * ```ts
 * const l = NdArray.from([2, 0, 1, 4], [2, 2]);
 * const b = NdArray.from([2, 5], [2, 1]);
 * const apply = (l: Tensor, b: Tensor) => triangularSolve(l, b, { lower: true, transpose: false });
 * const result = await evaluate(apply, referenceBackend())(l, b);
 * console.log(result.toNumbers()); // [1, 1]
 * ```
 */
export const triangularSolve = (l: Tensor, b: Tensor, options: TriangularSolveOptions): Tensor => {
  const {
    lower,
    transpose,
    unitDiagonal = false,
  } = checkOptions("triangularSolve(l, b)", options, { lower: true, transpose: true, unitDiagonal: true });
  requireOperands("triangularSolve", [l, b]);
  if (l.rank < 2 || b.rank < 2)
    throw new ShapeError(
      "triangularSolve",
      `operands ${formatShape(l.shape)} and ${formatShape(b.shape)} must both have at least 2 dimensions; reshape a vector to [n, 1]`,
    );
  const batch = broadcastShapes(l.shape.slice(0, -2), b.shape.slice(0, -2), "triangularSolve");
  const stretched = [l, b].map((x) => broadcastTo(x, [...batch, ...x.shape.slice(-2)]));
  return emitOne("triangular-solve", stretched, { lower, transpose, unitDiagonal });
};

/**
 * Solves `a x = b` by two triangular solves, given the Cholesky factor `l` of `a`. Cost: 2·n²·m flops per matrix.
 *
 * @example
 * ```ts
 * const a = NdArray.from([4, 0, 0, 2], [2, 2]);
 * const b = NdArray.from([4, 4], [2, 1]);
 * const apply = (a: Tensor, b: Tensor) => choleskySolve(cholesky(a), b);
 * const result = await evaluate(apply, referenceBackend())(a, b);
 * console.log(result.toNumbers()); // [1, 2]
 * ```
 */
export const choleskySolve = (l: Tensor, b: Tensor): Tensor =>
  triangularSolve(l, triangularSolve(l, b, { lower: true, transpose: false }), { lower: true, transpose: true });

/**
 * Computes the inverse `a⁻¹`, given the Cholesky factor `l` of `a`. For one product with the inverse, `choleskySolve`
 * is cheaper and more accurate.
 *
 * @example
 * ```ts
 * const apply = (a: Tensor) => inverseFromCholesky(cholesky(a));
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([4, 0, 0, 2], [2, 2]));
 * console.log(result.toNumbers().map((value) => value.toFixed(2))); // ['0.25', '0.00', '0.00', '0.50']
 * ```
 */
export const inverseFromCholesky = (l: Tensor): Tensor => {
  requireOperands("inverseFromCholesky", [l]);
  const { rows, columns } = positions(l);
  return choleskySolve(l, cast(equal(rows, columns), "f32"));
};

/** Result of `eigh`: eigenvalues λ and eigenvectors v with `a v = v diag(λ)`. */
export interface Eigendecomposition {
  /** Eigenvalues λ, f32 [..., n], ascending. */
  readonly values: Tensor;
  /** Eigenvectors v, f32 [..., n, n]: column j is the eigenvector of eigenvalue j. */
  readonly vectors: Tensor;
}

/**
 * Computes the eigenvalues and eigenvectors of a symmetric matrix: `a = v diag(λ) vᵀ`.
 *
 * @param a f32 [..., n, n], symmetric; only the lower triangle is read.
 * @returns `values` λ, f32 [..., n], ascending, and `vectors` v, f32 [..., n, n], with orthonormal columns. In each
 * column, the entry of largest magnitude (the first if several are equal) is positive. Eigenvectors of equal
 * eigenvalues are an unspecified basis of the eigenspace. If the lower triangle contains NaN or infinity, all results
 * are NaN.
 *
 * The absolute error of each eigenvalue is about one f32 rounding error of the largest eigenvalue magnitude. For equal
 * eigenvalues, the gradient omits the terms between their eigenvectors. The gradient is then finite, and correct for
 * functions that are symmetric in equal eigenvalues and do not depend on their eigenvectors, such as the sum of the
 * eigenvalues. For other functions, the gradient is not the derivative with respect to the matrix.
 * Cost: about 17/3·n³ flops per matrix.
 *
 * @throws ShapeError if the operand is not square or not f32.
 * @example
 * ```ts
 * const apply = (a: Tensor) => eigh(a).values;
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([2, 1, 1, 2], [2, 2]));
 * console.log(result.toNumbers().map(Math.round)); // [1, 3]
 * ```
 */
export const eigh = (a: Tensor): Eigendecomposition => {
  const [values, vectors] = emit("eigh", [a]) as [Tensor, Tensor];
  return { values, vectors };
};

/** Result of `qr`: factors with `a = q r`. */
export interface QrFactors {
  /** Factor with orthonormal columns, f32 [..., n, m]. */
  readonly q: Tensor;
  /** Upper triangular factor, f32 [..., m, m], zero below the diagonal. */
  readonly r: Tensor;
}

/**
 * Computes the thin QR factors `a = q r` by Householder reflections.
 *
 * @param a f32 [..., n, m] with n ≥ m.
 * @returns `q`, f32 [..., n, m], with orthonormal columns for any rank of `a`; `r`, f32 [..., m, m], upper triangular
 * with a nonnegative diagonal. If the columns of `a` are linearly independent, both factors are unique and the gradient
 * exists. If `a` contains NaN or infinity, all results are NaN.
 * Cost: 4·m²·(n − m/3) flops per matrix.
 *
 * @throws ShapeError if there are fewer rows than columns, or if the operand is not f32.
 * @example
 * ```ts
 * const apply = (a: Tensor) => qr(a).q;
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([3, 0, 4, 5], [2, 2]));
 * console.log(result.toNumbers().map((value) => Math.abs(value).toFixed(1))); // ['0.6', '0.8', '0.8', '0.6']
 * ```
 */
export const qr = (a: Tensor): QrFactors => {
  const [q, r] = emit("qr", [a]) as [Tensor, Tensor];
  return { q, r };
};

/**
 * Returns the row index and the column index of each entry of a square matrix, as i32 tensors of the matrix's shape.
 */
const positions = (a: Tensor): { rows: Tensor; columns: Tensor } => {
  const shape = a.shape.slice(-2);
  return { rows: iota(shape, "i32", { dim: 0 }), columns: iota(shape, "i32", { dim: 1 }) };
};

/**
 * Computes the gradient of `cholesky` with respect to the lower triangle of `a`: `Φ(S + Sᵀ)` with
 * `S = l⁻ᵀ Φ(lᵀ g) l⁻¹`. `g` is the cotangent of `l`. Φ halves the diagonal of a matrix and sets the entries above the
 * diagonal to zero.
 *
 * Source: Murray 2016, arXiv 1602.07527, equations 9 and 10.
 */
export const choleskyGradient = (l: Tensor, g: Tensor): Tensor => {
  const { rows, columns } = positions(l);
  const phi = (x: Tensor): Tensor =>
    where(
      broadcastTo(greater(rows, columns), x.shape),
      x,
      where(broadcastTo(equal(rows, columns), x.shape), multiply(x, 0.5), 0),
    );
  const backward = { lower: true, transpose: true };
  const half = triangularSolve(l, phi(matmul(l, g, { transposeA: true })), backward);
  const transposed = triangularSolve(l, swapDims(half, -1, -2), backward);
  return phi(add(transposed, swapDims(transposed, -1, -2)));
};

/**
 * Computes the gradients of `triangularSolve` with respect to `l` and `b`, for the solution x of `op(l) x = b` and its
 * cotangent `g`: `db = op(l)⁻ᵀ g`, and `dl = −db xᵀ` (its transpose if op transposes), restricted to the triangle that
 * was read.
 */
export const solveGradients = (
  l: Tensor,
  x: Tensor,
  g: Tensor,
  { lower, transpose, unitDiagonal = false }: TriangularSolveOptions,
): [dl: Tensor, db: Tensor] => {
  const db = triangularSolve(l, g, { lower, transpose: !transpose, unitDiagonal });
  const product = transpose ? matmul(x, db, { transposeB: true }) : matmul(db, x, { transposeB: true });
  const { rows, columns } = positions(l);
  const read = (unitDiagonal ? greater : greaterEqual)(
    ...((lower ? [rows, columns] : [columns, rows]) as [Tensor, Tensor]),
  );
  return [where(broadcastTo(read, l.shape), negate(product), 0), db];
};

/** Returns `x − xᵀ` for square matrices. */
const withoutSymmetric = (x: Tensor): Tensor => subtract(x, swapDims(x, -1, -2));

/**
 * Computes the gradient of `eigh` with respect to the lower triangle of `a`. With `M = vᵀ gᵥ` and
 * `F[i][j] = 1/(λ[j] − λ[i])`, `S = v (diag(g_λ) + F ∘ (M − Mᵀ)/2) vᵀ` is the gradient with respect to all entries of
 * `a`; gᵥ and g_λ are the cotangents of v and λ. Because an entry of the triangle represents two entries of `a`, the
 * result is `S + Sᵀ` below the diagonal and `S` on the diagonal.
 *
 * Eigenvalues that differ by at most `n · 2⁻²⁴ · max|λ|` are treated as equal, with F = 0. For equal eigenvalues,
 * `M − Mᵀ` is 0 if the loss does not depend on the choice of their eigenvectors, so the quotient would be 0/0.
 *
 * Source: Giles 2008, An extended collection of matrix derivative results, section 3.1; for symmetric `a`.
 */
export const eighGradient = (values: Tensor, vectors: Tensor, gradValues: Tensor, gradVectors: Tensor): Tensor => {
  const size = values.shape.at(-1)!;
  const { rows, columns } = positions(vectors);
  const gap = subtract(expandDims(values, { dims: -2 }), expandDims(values, { dims: -1 }));
  const least = multiply(reduceMax(absolute(values), { dims: [-1], keepDims: true }), size * 2 ** -24);
  const distinct = greater(absolute(gap), expandDims(least, { dims: -1 }));
  const turn = multiply(withoutSymmetric(matmul(vectors, gradVectors, { transposeA: true })), 0.5);
  const diagonal = broadcastTo(equal(rows, columns), vectors.shape);
  const inner = where(
    diagonal,
    expandDims(gradValues, { dims: -1 }),
    where(distinct, divide(turn, where(distinct, gap, 1)), 0),
  );
  const whole = matmul(matmul(vectors, inner), vectors, { transposeB: true });
  return where(
    broadcastTo(greater(rows, columns), vectors.shape),
    add(whole, swapDims(whole, -1, -2)),
    where(diagonal, whole, 0),
  );
};

/**
 * Computes the gradient of `qr` for linearly independent columns and cotangents g_q and g_r: `(g_q + q C) r⁻ᵀ`, where
 * `M = r g_rᵀ − g_qᵀ q`, and `C` is the lower triangle of M, mirrored above the diagonal. Only the upper triangle of
 * g_r is used.
 *
 * Source: Walter and Lehmann 2010, arXiv 1001.1654; Seeger et al. 2017, arXiv 1710.08717.
 */
export const qrGradient = (q: Tensor, r: Tensor, gradQ: Tensor, gradR: Tensor): Tensor => {
  const { rows, columns } = positions(r);
  const lower = broadcastTo(greaterEqual(rows, columns), r.shape);
  const upper = broadcastTo(greaterEqual(columns, rows), r.shape);
  const m = subtract(matmul(r, where(upper, gradR, 0), { transposeB: true }), matmul(gradQ, q, { transposeA: true }));
  const sum = add(gradQ, matmul(q, where(lower, m, swapDims(m, -1, -2))));
  return swapDims(triangularSolve(r, swapDims(sum, -1, -2), { lower: false, transpose: false }), -1, -2);
};
