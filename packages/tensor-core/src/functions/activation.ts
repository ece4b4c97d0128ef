import { ArgumentError } from "../errors.ts";
import { excerpt } from "../excerpt.ts";
import { emitOne } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkNumber, checkOptions } from "../options.ts";
import { add, exp, greater, multiply, stopGradient, subtract, tanh, where } from "./elementwise.ts";

/**
 * Rectified linear unit, `max(x, 0)`; the gradient at 0 is 0.
 *
 * @example
 * ```ts
 * const result = await evaluate(relu, referenceBackend())(NdArray.from([-1.5, 0, 2]));
 * console.log(result.toNumbers()); // [0, 0, 2]
 * ```
 */
export const relu = (x: Tensor): Tensor => emitOne("relu", [x]);

/**
 * Gaussian error linear unit. `approximate: "tanh"` selects the cheaper approximation that GPT-2 uses.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => gelu(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([-1.5, 0, 2]));
 * console.log(result.toNumbers().map((value) => value.toFixed(2))); // ['-0.10', '0.00', '1.95']
 * ```
 */
export const gelu = (x: Tensor, options: { readonly approximate?: "none" | "tanh" } = {}): Tensor => {
  const { approximate = "none" } = checkOptions("gelu(x)", options, { approximate: true });
  if (approximate !== "none" && approximate !== "tanh")
    throw new ArgumentError(
      `gelu: approximate is ${excerpt(approximate)}, but it must be "none" or "tanh"; choose one of them`,
    );
  return emitOne("gelu", [x], { approximate: approximate === "tanh" });
};

/**
 * Sigmoid linear unit (swish), `x · sigmoid(x)`.
 *
 * @example
 * ```ts
 * const result = await evaluate(silu, referenceBackend())(NdArray.from([-1.5, 0, 2]));
 * console.log(result.toNumbers().map((value) => value.toFixed(2))); // ['-0.27', '0.00', '1.76']
 * ```
 */
export const silu = (x: Tensor): Tensor => emitOne("silu", [x]);

/**
 * Softplus, `log(1 + e^x)`.
 *
 * @example
 * ```ts
 * const result = await evaluate(softplus, referenceBackend())(NdArray.from([-1.5, 0, 2]));
 * console.log(result.toNumbers().map((value) => value.toFixed(2))); // ['0.20', '0.69', '2.13']
 * ```
 */
export const softplus = (x: Tensor): Tensor => emitOne("softplus", [x]);

/**
 * Leaky ReLU: `x` if x > 0, otherwise `slope · x`; the gradient at 0 is the slope, as in PyTorch. Default slope: 0.01.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => leakyRelu(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([-1.5, 0, 2]));
 * console.log(result.toNumbers().map((value) => value.toFixed(2))); // ['-0.01', '0.00', '2.00']
 * ```
 */
export const leakyRelu = (x: Tensor, options: { readonly slope?: number } = {}): Tensor => {
  const { slope = 0.01 } = checkOptions("leakyRelu(x)", options, { slope: true });
  checkNumber("leakyRelu", "slope", slope, { from: -Infinity, usual: 0.01 });
  return where(greater(x, 0), x, multiply(x, slope));
};

/**
 * Exponential linear unit: `x` if x > 0, otherwise `alpha · (e^x − 1)`. Default alpha: 1. `e^x − 1` is computed without
 * cancellation near 0.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => elu(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([-1.5, 0, 2]));
 * console.log(result.toNumbers().map((value) => value.toFixed(2))); // ['-0.78', '0.00', '2.00']
 * ```
 * Source: Clevert et al. 2015, arXiv 1511.07289.
 */
export const elu = (x: Tensor, options: { readonly alpha?: number } = {}): Tensor => {
  const { alpha = 1 } = checkOptions("elu(x)", options, { alpha: true });
  checkNumber("elu", "alpha", alpha, { from: -Infinity, usual: 1 });
  const positive = greater(x, 0);
  const below = where(positive, 0, x);
  const grown = exp(below);
  const rough = subtract(grown, 1);
  // tanh(x/2) · (e^x + 1) equals e^x − 1 without cancellation, but the derivative of this formula is less accurate.
  // Therefore, the value is computed with this formula, and the gradient with e^x − 1. The two values are so close that
  // their difference is exact.
  const fine = multiply(tanh(multiply(below, 0.5)), add(grown, 1));
  return where(positive, x, multiply(add(rough, stopGradient(subtract(fine, rough))), alpha));
};
