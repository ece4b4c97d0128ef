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
  /** From the greatest to the least. Default: false, from the least to the greatest. */
  readonly descending?: boolean;
}

/**
 * The entries along `dim` (the last one by default) in order, and where each of them stood.
 *
 * Equal entries keep their order, in both directions (the sort is stable); a NaN counts as greatest, so it comes last
 * unless `descending`. The gradient of the values goes back to the places that they came from.
 *
 * @param x f32, i32 or u32.
 * @returns `[values, indices]`, both shaped like `x`; indices are i32.
 * Cost: each entry a fixed number of times on the CPU (by digits), log₂² of a tile and then log₂ of the tiles in merges
 * on WebGPU.
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
      `${formatSpec(x)} is not supported, it takes ${arithmetic.join(", ")}; cast the operand first`,
    );
  const size = x.shape[along]!;
  const rows = swapDims(x, along, -1);
  const back = (sorted: Tensor): Tensor => swapDims(sorted, along, -1);
  if (descending) {
    const [values, indices] = topK(rows, size);
    return [back(values), back(indices)];
  }
  // Read from the end, so that among equals the last one comes first and all of it can be turned around. Negated values
  // would put NaN in front.
  const turn = (entries: Tensor): Tensor => flip(entries, { dims: -1 });
  const [values, indices] = topK(turn(rows), size);
  return [back(turn(values)), back(subtract(size - 1, turn(indices)))];
};

/**
 * Where each entry of `x` stands in order: the `indices` of `sort`, i32, shaped like `x`. `gather` of a vector by them
 * is in order.
 *
 * Stable, NaN last unless `descending`, as `sort`.
 * @example const byExpert = argsort(expertOfToken);
 */
export const argsort = (x: Tensor, options: SortOptions = {}): Tensor => {
  requireOperands("argsort", [x]);
  return sort(x, checkOptions("argsort(x)", options, { dim: true, descending: true }))[1];
};
