import { arithmetic } from "../dtype.ts";
import { ShapeError } from "../errors.ts";
import { requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { formatSpec, resolveDim } from "../shape.ts";
import { type DimOption, subtract } from "./elementwise.ts";
import { flip } from "./flip.ts";
import { swapDims } from "./movement.ts";
import { topK } from "./reduce.ts";

export interface SortOptions extends DimOption {
  /** Whether the largest entries come first. Default: false. */
  readonly descending?: boolean;
}

/**
 * Sorts the entries along `dim` (default: the last dimension), and returns the sorted values and their original
 * indices.
 *
 * The sort is stable in both directions: equal entries keep their order. NaN is treated as the maximum, so NaN comes
 * last unless `descending`. Gradients of the values flow to their original positions.
 *
 * @param x f32, i32 or u32.
 * @returns `[values, indices]`, both shaped like `x`; indices are i32.
 * Cost: on the CPU, a fixed number of passes (radix sort); on WebGPU, about log₂²(tile size) compare steps per tile,
 * then log₂(number of tiles) merge passes.
 * @throws ShapeError if the dtype is not f32, i32 or u32, or `x` is a scalar.
 * @example
 * ```ts
 * const apply = (x: Tensor) => sort(x, { descending: true })[0];
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 4, 3]));
 * console.log(result.toNumbers()); // [4, 3, 1]
 * ```
 */
export const sort = (x: Tensor, options: SortOptions = {}): [values: Tensor, indices: Tensor] => {
  const { dim = -1, descending = false } = checkOptions("sort(x)", options, { dim: true, descending: true });
  requireOperands("sort", [x]);
  const along = resolveDim(dim, x.rank, "sort");
  if (!arithmetic.includes(x.dtype))
    throw new ShapeError(
      "sort",
      `${formatSpec(x)} is not supported, sort takes ${arithmetic.join(", ")}; cast the operand first`,
    );
  const size = x.shape[along]!;
  const rows = swapDims(x, along, -1);
  const back = (sorted: Tensor): Tensor => swapDims(sorted, along, -1);
  if (descending) {
    const [values, indices] = topK(rows, size);
    return [back(values), back(indices)];
  }
  // Ascending order: `topK` of the reversed input, then reversed, so that equal entries keep their order. `topK` of
  // negated values would place NaN first.
  const reversed = (entries: Tensor): Tensor => flip(entries, { dims: -1 });
  const [values, indices] = topK(reversed(rows), size);
  return [back(reversed(values)), back(subtract(size - 1, reversed(indices)))];
};

/**
 * Returns the indices that sort `x`: the `indices` of `sort`, i32, shaped like `x`. For a vector, `gather(x, indices)`
 * is sorted.
 *
 * Stable; NaN comes last unless `descending`, as in `sort`.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => argsort(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 4, 3]));
 * console.log(result.toNumbers()); // [0, 2, 1]
 * ```
 */
export const argsort = (x: Tensor, options: SortOptions = {}): Tensor => {
  requireOperands("argsort", [x]);
  return sort(x, checkOptions("argsort(x)", options, { dim: true, descending: true }))[1];
};
