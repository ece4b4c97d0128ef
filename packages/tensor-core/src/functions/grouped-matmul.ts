import { emitOne, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * Multiply each group of rows by its own matrix: `y[r] = x[r] · w[g]` for the rows r of group g. Rows are sorted by
 * group; group sizes are known only at run time, as for the experts of a mixture.
 *
 * Group 0 has the first `counts[0]` rows, group 1 the next `counts[1]`, and so on. A negative count counts as 0. If the
 * counts add up to more rows than `x` has, groups take the remaining rows, in order. Rows after the last group give 0,
 * and their gradient is 0.
 *
 * @param x f32 [rows, K]. @param w f32 [groups, K, N]. @param counts i32 [groups].
 * @returns [rows, N].
 * Cost: 2·rows·K·N flops, counted as if every row belonged to a group: one product per group. The gradients are two
 * more grouped products.
 * @throws ShapeError if shapes or dtypes do not match.
 */
export const groupedMatmul = (x: Tensor, w: Tensor, counts: Tensor): Tensor => {
  requireOperands("groupedMatmul", [x, w, counts]);
  return emitOne("grouped-matmul", [x, w, counts], { transposeW: false });
};
