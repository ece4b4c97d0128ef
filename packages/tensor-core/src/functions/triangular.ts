import { ArgumentError, ShapeError } from "../errors.ts";
import { requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { formatSpec } from "../shape.ts";
import { greaterEqual, iota, lessEqual, subtract, where } from "./elementwise.ts";

export interface TriangleOptions {
  /**
   * Index of the diagonal that bounds the kept triangle; the diagonal is also kept. 0: main diagonal; 1: first diagonal
   * above; −1: first diagonal below. Default: 0.
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

/**
 * Returns `x` [..., rows, columns] with the entries above a diagonal replaced by zeros, even if they are NaN.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => tril(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4], [2, 2]));
 * console.log(result.toNumbers()); // [1, 0, 3, 4]
 * ```
 */
export const tril = (x: Tensor, options: TriangleOptions = {}): Tensor => triangle("tril", x, options);

/**
 * Returns `x` [..., rows, columns] with the entries below a diagonal replaced by zeros, even if they are NaN.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => triu(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4], [2, 2]));
 * console.log(result.toNumbers()); // [1, 2, 0, 4]
 * ```
 */
export const triu = (x: Tensor, options: TriangleOptions = {}): Tensor => triangle("triu", x, options);
