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
 * Sort the entries along `dim` (the last by default), and return their original indices.
 *
 * The sort is stable in both directions: equal entries keep their order. A NaN counts as the maximum, so it comes last
 * unless `descending`. The gradient of the values goes back to their original positions.
 *
 * @param x f32, i32 or u32.
 * @returns `[values, indices]`, both shaped like `x`; indices are i32.
 * Cost: on the CPU, a fixed number of passes (radix sort); on WebGPU, log₂² of the tile size and then log₂ of the
 * number of tiles in merges.
 * @throws ShapeError for other dtypes and for a scalar.
 * @example const [values, indices] = sort(x, { descending: true });
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
  // Read from the end, so that the last of equal entries comes first and the whole result can be reversed. Negated
  // values would put NaN first.
  const reversed = (entries: Tensor): Tensor => flip(entries, { dims: -1 });
  const [values, indices] = topK(reversed(rows), size);
  return [back(reversed(values)), back(subtract(size - 1, reversed(indices)))];
};

/**
 * Indices that sort `x`: the `indices` of `sort`, i32, shaped like `x`. `gather` of a vector by these indices is
 * sorted.
 *
 * Stable, NaN last unless `descending`, as in `sort`.
 * @example const byExpert = argsort(expertOfToken);
 */
export const argsort = (x: Tensor, options: SortOptions = {}): Tensor => {
  requireOperands("argsort", [x]);
  return sort(x, checkOptions("argsort(x)", options, { dim: true, descending: true }))[1];
};
