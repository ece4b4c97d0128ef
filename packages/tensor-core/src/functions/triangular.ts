import { ArgumentError, ShapeError } from "../errors.ts";
import { requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { formatSpec } from "../shape.ts";
import { greaterEqual, iota, lessEqual, subtract, where } from "./elementwise.ts";

export interface TriangleOptions {
  /**
   * Diagonal at the edge of the triangle, which belongs to it: 0 is the main diagonal, 1 the next above, −1 the next
   * below. Default: 0.
   */
  readonly diagonal?: number;
}

const triangle = (op: "tril" | "triu", x: Tensor, options: TriangleOptions): Tensor => {
  const { diagonal = 0 } = checkOptions(`${op}(x)`, options, { diagonal: true });
  requireOperands(op, [x]);
  if (x.rank < 2)
    throw new ShapeError(
      op,
      `takes matrices [..., rows, columns], got ${formatSpec(x)}; reshape it to 2 dimensions or more`,
    );
  if (!Number.isInteger(diagonal))
    throw new ArgumentError(
      `${op}: diagonal ${diagonal} is not a whole number; use 0 for the main diagonal, 1 for the next above, -1 for the next below`,
    );
  const shape = x.shape.slice(-2);
  const above = subtract(iota(shape, "i32", { dim: 1 }), iota(shape, "i32", { dim: 0 }));
  return where(op === "tril" ? lessEqual(above, diagonal) : greaterEqual(above, diagonal), x, 0);
};

/** `x` [..., rows, columns] with zeros above a diagonal. The replaced entries may hold anything, including NaN. */
export const tril = (x: Tensor, options: TriangleOptions = {}): Tensor => triangle("tril", x, options);

/** `x` [..., rows, columns] with zeros below a diagonal. The replaced entries may hold anything, including NaN. */
export const triu = (x: Tensor, options: TriangleOptions = {}): Tensor => triangle("triu", x, options);
