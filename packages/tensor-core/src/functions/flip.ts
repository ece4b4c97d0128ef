import { emitOne, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { resolveDims } from "../shape.ts";
import { arange, subtract } from "./elementwise.ts";

/**
 * Reverses the order of entries along `dims` (default: all dimensions). Accepts any dtype.
 *
 * Cost: one read and one write of `x` for each dimension.
 * @example
 * ```ts
 * const result = await evaluate((x: Tensor) => flip(x), referenceBackend())(NdArray.from([1, 2, 3]));
 * console.log(result.toNumbers()); // [3, 2, 1]
 * ```
 */
export const flip = (x: Tensor, options: { readonly dims?: number | readonly number[] } = {}): Tensor => {
  const { dims } = checkOptions("flip(x)", options, { dims: true });
  requireOperands("flip", [x]);
  return resolveDims(dims, x.rank, "flip").reduce((flipped, dim) => {
    const size = x.shape[dim]!;
    if (size < 2) return flipped;
    return emitOne("gather", [flipped, subtract(size - 1, arange(size))], {
      dim,
      outside: "invalid",
      permutation: true,
    });
  }, x);
};
