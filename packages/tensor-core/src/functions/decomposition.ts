import { ShapeError } from "../errors.ts";
import { emitOne, requireOperands } from "../graph/emit.ts";
import { checkOptions } from "../options.ts";
import type { Tensor } from "../graph/tensor.ts";
import { broadcastShapes, formatShape } from "../shape.ts";
import { add, cast, equal, greater, greaterEqual, iota, multiply, negate, where } from "./elementwise.ts";
import { matmul } from "./linear.ts";
import { broadcastTo, swapDims } from "./movement.ts";

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
