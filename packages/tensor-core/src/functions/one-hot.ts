import type { DType } from "../dtype.ts";
import { emitOne } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * One-hot encoding along a new last dimension of size `depth`: 1 at the position of the index, 0 elsewhere. An index
 * out of range gives a row of zeros.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => oneHot(x, 3);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([2, 0], [2], "i32"));
 * console.log(result.toNumbers()); // [0, 0, 1, 1, 0, 0]
 * ```
 */
export const oneHot = (indices: Tensor, depth: number, dtype: DType = "f32"): Tensor =>
  emitOne("one-hot", [indices], { depth, dtype });
