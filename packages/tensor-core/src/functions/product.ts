import { ShapeError } from "../errors.ts";
import { requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { formatSpec, resolveDims } from "../shape.ts";
import { multiply, ones } from "./elementwise.ts";
import { reshape, slice } from "./movement.ts";
import type { ReduceOptions } from "./reduce.ts";

/** Returns the slice of `x` with the entries `begin` to `end` − 1 along dimension `along`. */
const rangeOf = (x: Tensor, along: number, begin: number, end: number): Tensor =>
  slice(
    x,
    x.shape.map((_, dim) => (dim === along ? begin : 0)),
    x.shape.map((size, dim) => (dim === along ? end : size)),
  );

/**
 * Computes the product along one dimension by repeated halving: multiplies the first half by the second half until one
 * entry remains. The dimension keeps size 1.
 */
const foldDim = (x: Tensor, along: number): Tensor => {
  const size = x.shape[along]!;
  if (size === 0)
    return ones(
      x.shape.map((own, dim) => (dim === along ? 1 : own)),
      x.dtype,
    );
  if (size === 1) return x;
  const half = Math.floor(size / 2);
  const folded = foldDim(multiply(rangeOf(x, along, 0, half), rangeOf(x, along, half, 2 * half)), along);
  return size % 2 === 0 ? folded : multiply(folded, rangeOf(x, along, size - 1, size));
};

/**
 * Computes the product over `dims`; 1 if there are no entries. Accepts f32, i32 and u32; integers wrap around.
 *
 * The gradient of each entry is the product of the other entries, computed without division, so the gradient is correct
 * even if entries are 0.
 * Cost: ⌈log₂ n⌉ passes over n/2, n/4, … products; about 1 flop and 2 reads per entry in total.
 * @example
 * ```ts
 * const apply = (x: Tensor) => prod(x, { dims: 1 });
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4], [2, 2]));
 * console.log(result.toNumbers()); // [2, 12]
 * ```
 */
export const prod = (x: Tensor, options: ReduceOptions = {}): Tensor => {
  const { dims, keepDims = false } = checkOptions("prod(x)", options, { dims: true, keepDims: true });
  requireOperands("prod", [x]);
  if (!["f32", "i32", "u32"].includes(x.dtype))
    throw new ShapeError(
      "prod",
      `${formatSpec(x)} is not supported, prod takes f32, i32 and u32; cast the operand first`,
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
