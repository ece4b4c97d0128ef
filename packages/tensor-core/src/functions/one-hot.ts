import type { DType } from "../dtype.ts";
import { emitOne } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * One-hot encoding along a new last dimension of size `depth`: 1 at the position of the index, 0 elsewhere. An index
 * out of range gives a row of zeros.
 */
export const oneHot = (indices: Tensor, depth: number, dtype: DType = "f32"): Tensor =>
  emitOne("one-hot", [indices], { depth, dtype });
