import type { DType } from "../dtype.ts";
import { emitOne } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * 1 at the position of each index, 0 elsewhere, along a new last dimension of size `depth`. An index out of range gives
 * only zeros.
 */
export const oneHot = (indices: Tensor, depth: number, dtype: DType = "f32"): Tensor =>
  emitOne("one-hot", [indices], { depth, dtype });
