import { ShapeError } from "../errors.ts";
import { requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { formatSpec, resolveDims } from "../shape.ts";
import { add, equal, exp, isFinite, log, stopGradient, subtract, where } from "./elementwise.ts";
import { reshape } from "./movement.ts";
import { reduceMax, type ReduceOptions, sum } from "./reduce.ts";

/**
 * Computes `log Σ exp(x)` over `dims`, f32, without overflow: the maximum is subtracted before the exponential and
 * added to the result.
 *
 * The result is −∞ if there are no entries or all entries are −∞, and ∞ if an entry is ∞. The gradient is the softmax
 * over `dims`; the gradient is 0 if the result is −∞.
 *
 * @throws ShapeError if the dtype is not f32.
 * Cost: two reads of `x`.
 * @example
 * ```ts
 * const apply = (x: Tensor) => logSumExp(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([0, 0]));
 * console.log(result.item().toFixed(3)); // 0.693
 * ```
 */
export const logSumExp = (x: Tensor, options: ReduceOptions = {}): Tensor => {
  const { dims, keepDims = false } = checkOptions("logSumExp(x)", options, { dims: true, keepDims: true });
  requireOperands("logSumExp", [x]);
  if (x.dtype !== "f32")
    throw new ShapeError("logSumExp", `${formatSpec(x)} is not supported, logSumExp takes f32; cast the operand first`);
  const over = resolveDims(dims, x.rank, "logSumExp");
  const greatest = stopGradient(reduceMax(x, { dims: over, keepDims: true }));
  // Do not subtract an infinite maximum, because ∞ − ∞ is NaN.
  const shift = where(isFinite(greatest), greatest, 0);
  const total = sum(exp(subtract(x, shift)), { dims: over, keepDims: true });
  // Replace 0 before the logarithm, because the derivative of the logarithm is infinite at 0.
  const none = equal(total, 0);
  const result = where(none, -Infinity, add(log(where(none, 1, total)), shift));
  return keepDims
    ? result
    : reshape(
        result,
        x.shape.filter((_, dim) => !over.includes(dim)),
      );
};
