import { emitOne } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { resolveDim } from "../shape.ts";

/**
 * Take entries of `x` along `dim` by number: the result has shape `x.shape[:dim] + indices.shape + x.shape[dim+1:]`.
 *
 * An index outside 0 ≤ index < size (negative ones too) cannot raise an error on a device. It yields NaN for floats, so that the step stops at
 * its non-finite check; the least value for i32, the greatest for u32 and u8, true for bool; or zeros with `outside: "zero"`.
 *
 * @param indices i32, any shape.
 */
export const gather = (x: Tensor, indices: Tensor, dim = 0, options: { readonly outside?: "invalid" | "zero" } = {}): Tensor =>
  emitOne("gather", [x, indices], { dim: resolveDim(dim, x.rank, "gather"), outside: options.outside ?? "invalid" });

/** Rows of `table` [entries, width] by number: indices [...] → [..., width]. An index without a row yields NaN, see `gather`. */
export const embedding = (table: Tensor, indices: Tensor): Tensor => gather(table, indices, 0);

/**
 * `base` with `updates` added at `indices` along `dim`; equal indices add up, in the order of `indices`. An index outside the dimension is left out.
 *
 * @param indices i32, any shape.
 * @param updates shape `base.shape[:dim] + indices.shape + base.shape[dim+1:]`, dtype of `base`: f32, i32 or u32.
 */
export const scatterAdd = (base: Tensor, indices: Tensor, updates: Tensor, dim = 0): Tensor =>
  emitOne("scatter-add", [base, indices, updates], { dim: resolveDim(dim, base.rank, "scatter-add") });
