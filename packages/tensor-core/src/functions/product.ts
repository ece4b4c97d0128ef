import { ShapeError } from "../errors.ts";
import { requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { formatSpec, resolveDims } from "../shape.ts";
import { multiply, ones } from "./elementwise.ts";
import { reshape, slice } from "./movement.ts";
import type { ReduceOptions } from "./reduce.ts";

/** The entries from `begin` up to `end` along one dimension. */
const stretchOf = (x: Tensor, along: number, begin: number, end: number): Tensor =>
  slice(
    x,
    x.shape.map((_, dim) => (dim === along ? begin : 0)),
    x.shape.map((size, dim) => (dim === along ? end : size)),
  );

/** Fold one dimension to size 1: the first half times the second, until one entry is left. */
const foldDim = (x: Tensor, along: number): Tensor => {
  const size = x.shape[along]!;
  if (size === 0)
    return ones(
      x.shape.map((own, dim) => (dim === along ? 1 : own)),
      x.dtype,
    );
  if (size === 1) return x;
  const half = Math.floor(size / 2);
  const folded = foldDim(multiply(stretchOf(x, along, 0, half), stretchOf(x, along, half, 2 * half)), along);
  return size % 2 === 0 ? folded : multiply(folded, stretchOf(x, along, size - 1, size));
};

/**
 * Product over `dims`; 1 where there is nothing to multiply. Takes f32, i32, u32; integers wrap around.
 *
 * It is multiplied in halves, so each entry's gradient is the product of the others, taken without a division: right
 * where entries are 0, one or several.
 * Cost: ⌈log₂ n⌉ sweeps over n/2, n/4, … products; about 1 flop and 2 reads per entry in all.
 */
export const prod = (x: Tensor, options: ReduceOptions = {}): Tensor => {
  const { dims, keepDims = false } = checkOptions("prod(x)", options, { dims: true, keepDims: true });
  requireOperands("prod", [x]);
  if (!["f32", "i32", "u32"].includes(x.dtype))
    throw new ShapeError(
      "prod",
      `${formatSpec(x)} is not supported, it takes f32, i32 and u32; cast the operand first`,
    );
  const over = resolveDims(dims, x.rank, "prod");
  const folded = over.reduce(foldDim, x);
  return keepDims
    ? folded
    : reshape(
        folded,
        x.shape.filter((_, dim) => !over.includes(dim)),
      );
};
