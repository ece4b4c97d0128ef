import { emitOne, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * Multiplies each group of rows by the matrix of the group: `y[r] = x[r] · w[g]` for the rows r of group g. Rows are
 * sorted by group; group sizes are known only at run time, as for experts in MoE layers.
 *
 * Group 0 has the first `counts[0]` rows, group 1 the next `counts[1]`, and so on. Negative counts are treated as 0. If
 * the sum of the counts exceeds the rows of `x`, counts are limited to the remaining rows, in group order. Rows after
 * the last group have result 0 and gradient 0.
 *
 * @param x f32 [rows, K]. @param w f32 [groups, K, N]. @param counts i32 [groups].
 * @returns [rows, N].
 * Cost: at most 2·rows·K·N flops: one product per group. The gradients are two more grouped products.
 * @throws ShapeError if shapes or dtypes do not match.
 * @example
 * ```ts
 * const x = NdArray.from([1, 2], [2, 1]);
 * const w = NdArray.from([10, 100], [2, 1, 1]);
 * const counts = NdArray.from([1, 1], [2], "i32");
 * const apply = (x: Tensor, w: Tensor, counts: Tensor) => groupedMatmul(x, w, counts);
 * const result = await evaluate(apply, referenceBackend())(x, w, counts);
 * console.log(result.toNumbers()); // [10, 200]
 * ```
 */
export const groupedMatmul = (x: Tensor, w: Tensor, counts: Tensor): Tensor => {
  requireOperands("groupedMatmul", [x, w, counts]);
  return emitOne("grouped-matmul", [x, w, counts], { transposeW: false });
};
