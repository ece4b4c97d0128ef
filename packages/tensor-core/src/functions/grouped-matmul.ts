import { emitOne, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * Multiply each group of rows by a matrix of its own: `y[r] = x[r] · w[g]` for the rows r of group g. Rows are sorted
 * by group; how many each group has is known only when the graph runs, as with the experts of a mixture.
 *
 * Group 0 has the first `counts[0]` rows, group 1 the next, and so on. A negative count counts as 0; where counts ask
 * for more rows than there are, groups take what is left, in order. Rows behind the last group give 0, and nothing
 * flows back to them.
 *
 * @param x f32 [rows, K]. @param w f32 [groups, K, N]. @param counts i32 [groups].
 * @returns [rows, N].
 * Cost: 2·rows·K·N flops, counted as if every row belonged to a group. Per group the product of its rows; the gradients
 * are two grouped products more.
 * @throws ShapeError where shapes or dtypes do not fit.
 */
export const groupedMatmul = (x: Tensor, w: Tensor, counts: Tensor): Tensor => {
  requireOperands("groupedMatmul", [x, w, counts]);
  return emitOne("grouped-matmul", [x, w, counts], { transposeW: false });
};
