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
  /** Which triangle of `l` is read: the lower one, or the upper one. */
  readonly lower: boolean;
  /** Solve `lᵀ x = b` instead of `l x = b`. */
  readonly transpose: boolean;
  /** Take the diagonal as ones and do not read it. Default: false. */
  readonly unitDiagonal?: boolean;
}

/**
 * Lower Cholesky factor `l` with `a = l lᵀ`.
 *
 * @param a f32 [..., n, n], symmetric positive definite; only the lower triangle is read.
 * @returns f32 [..., n, n], zero above the diagonal. A matrix that is not positive definite yields NaN: in every row
 * from the failing pivot on, all entries from the pivot's column to the diagonal. The columns before it are right.
 * Cost: n³/3 flops per matrix.
 */
export const cholesky = (a: Tensor): Tensor => emitOne("cholesky", [a]);

/**
 * Solve `l x = b`, or `lᵀ x = b`, for a triangular matrix.
 *
 * @param l f32 [..., n, n]; the other triangle is not read.
 * @param b f32 [..., n, m]. Leading dimensions stretch to each other as in `add`.
 * @returns f32 [..., n, m].
 * Cost: n²·m flops per matrix.
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

/** `x` with `a x = b`, given the Cholesky factor `l` of `a`: two triangular solves, 2·n²·m flops per matrix. */
export const choleskySolve = (l: Tensor, b: Tensor): Tensor =>
  triangularSolve(l, triangularSolve(l, b, { lower: true, transpose: false }), { lower: true, transpose: true });

/**
 * `a⁻¹`, given the Cholesky factor `l` of `a`; to multiply it with something once, `choleskySolve` is cheaper and more
 * accurate.
 */
export const inverseFromCholesky = (l: Tensor): Tensor => {
  requireOperands("inverseFromCholesky", [l]);
  const { rows, columns } = positions(l);
  return choleskySolve(l, cast(equal(rows, columns), "f32"));
};

/** Eigenvalues and eigenvectors: `a v = v diag(λ)`. */
export interface Eigendecomposition {
  /** λ, f32 [..., n], ascending. */
  readonly values: Tensor;
  /** v, f32 [..., n, n]: column j belongs to value j. */
  readonly vectors: Tensor;
}

/**
 * Eigenvalues and eigenvectors of a symmetric matrix: `a = v diag(λ) vᵀ`.
 *
 * @param a f32 [..., n, n], symmetric; only the lower triangle is read.
 * @returns `values` λ, f32 [..., n], ascending, and `vectors` v, f32 [..., n, n], orthonormal columns, in each of which
 * the entry of largest magnitude is positive, the first one of equals. Vectors of equal values span the right space, in
 * which basis is not said. A NaN or an infinity in the triangle makes everything NaN.
 *
 * Values are off by the rounding of f32 of the largest magnitude among them. Where values are equal, the gradient takes
 * the part between their vectors as 0: finite, and right for what depends on equal values alike and not on their
 * vectors, as their sum is. It is not the derivative of a function of the whole matrix there.
 * Cost: about 17/3·n³ flops per matrix.
 *
 * @throws ShapeError for what is not square or not f32.
 * @example const { values, vectors } = eigh(matmul(x, x, { transposeA: true }));
 */
export const eigh = (a: Tensor): Eigendecomposition => {
  const [values, vectors] = emit("eigh", [a]) as [Tensor, Tensor];
  return { values, vectors };
};

/** Orthonormal columns and a triangle: `a = q r`. */
export interface QrFactors {
  /** f32 [..., n, m]. */
  readonly q: Tensor;
  /** f32 [..., m, m], zero below the diagonal. */
  readonly r: Tensor;
}

/**
 * Thin QR factors `a = q r` by Householder reflections.
 *
 * @param a f32 [..., n, m] with n ≥ m.
 * @returns `q`, f32 [..., n, m], with orthonormal columns, whatever the rank of `a` is; `r`, f32 [..., m, m], upper
 * triangular with a diagonal that is not negative, which makes both unique where the columns of `a` are independent.
 * There the gradient exists, too. A NaN or an infinity in `a` makes everything NaN.
 * Cost: 4·m²·(n − m/3) flops per matrix.
 *
 * @throws ShapeError for fewer rows than columns, or what is not f32.
 * @example const { q } = qr(normal(key, [512, 32]));
 */
export const qr = (a: Tensor): QrFactors => {
  const [q, r] = emit("qr", [a]) as [Tensor, Tensor];
  return { q, r };
};

/** Row and column of each entry of a square matrix. */
const positions = (a: Tensor): { rows: Tensor; columns: Tensor } => {
  const shape = a.shape.slice(-2);
  return { rows: iota(shape, "i32", { dim: 0 }), columns: iota(shape, "i32", { dim: 1 }) };
};

/**
 * Gradient of `cholesky` for the lower triangle of `a`: with Φ, which halves the diagonal and drops what lies above it,
 * `S = l⁻ᵀ Φ(lᵀ g) l⁻¹` and the result is `Φ(S + Sᵀ)`.
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
 * Gradients of `triangularSolve` for `l` and `b`: `db = op(l)⁻ᵀ g`, and `dl = −db xᵀ` (its transpose where op
 * transposes) on the triangle that was read.
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

/** `x − xᵀ` of square matrices. */
const withoutSymmetric = (x: Tensor): Tensor => subtract(x, swapDims(x, -1, -2));

/**
 * Gradient of `eigh` for the lower triangle of `a`. With `M = vᵀ gᵥ` and `F[i][j] = 1/(λ[j] − λ[i])`,
 * `S = v (diag(g_λ) + F ∘ (M − Mᵀ)/2) vᵀ` is that for all of `a`. An entry of the triangle stands for two: the result
 * is `S + Sᵀ` below the diagonal, `S` on it.
 *
 * Values that differ by less than n roundings of the largest magnitude are taken as equal, and F as 0 there, where
 * `M − Mᵀ` is 0, too, for whatever does not depend on the choice among their vectors, and 0/0 says nothing.
 *
 * Source: Giles 2008, An extended collection of matrix derivative results, section 3.1; for symmetric `a`.
 */
export const eighGradient = (values: Tensor, vectors: Tensor, ofValues: Tensor, ofVectors: Tensor): Tensor => {
  const size = values.shape.at(-1)!;
  const { rows, columns } = positions(vectors);
  const gap = subtract(expandDims(values, { dims: -2 }), expandDims(values, { dims: -1 }));
  const least = multiply(reduceMax(absolute(values), { dims: [-1], keepDims: true }), size * 2 ** -24);
  const distinct = greater(absolute(gap), expandDims(least, { dims: -1 }));
  const turn = multiply(withoutSymmetric(matmul(vectors, ofVectors, { transposeA: true })), 0.5);
  const diagonal = broadcastTo(equal(rows, columns), vectors.shape);
  const inner = where(
    diagonal,
    expandDims(ofValues, { dims: -1 }),
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
 * Gradient of `qr`, for independent columns: with `M = r g_rᵀ − g_qᵀ q` and `C` its lower triangle mirrored above the
 * diagonal, `(g_q + q C) r⁻ᵀ`. Only the upper triangle of g_r counts.
 *
 * Source: Walter and Lehmann 2010, arXiv 1001.1654; Seeger et al. 2017, arXiv 1710.08717.
 */
export const qrGradient = (q: Tensor, r: Tensor, ofQ: Tensor, ofR: Tensor): Tensor => {
  const { rows, columns } = positions(r);
  const lower = broadcastTo(greaterEqual(rows, columns), r.shape);
  const upper = broadcastTo(greaterEqual(columns, rows), r.shape);
  const m = subtract(matmul(r, where(upper, ofR, 0), { transposeB: true }), matmul(ofQ, q, { transposeA: true }));
  const sum = add(ofQ, matmul(q, where(lower, m, swapDims(m, -1, -2))));
  return swapDims(triangularSolve(r, swapDims(sum, -1, -2), { lower: false, transpose: false }), -1, -2);
};
