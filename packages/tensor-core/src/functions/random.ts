import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { emitOne, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkNumber, checkOptions } from "../options.ts";
import { requireShape, type Shape } from "../shape.ts";
import { add, cast, cos, full, less, log, multiply, negate, shiftRight, sqrt, where } from "./elementwise.ts";
import { argmax } from "./reduce.ts";

/**
 * Generates uniform random bits: flat element i is word `i mod 2` of Threefry2x32-20 under `key` at counter
 * `(⌊i/2⌋, 0)`. Equal keys give equal bits, so derive a new key for each use with `foldIn` or `splitKey`.
 *
 * @param key u32[2]
 * @returns u32 of `shape`.
 * @example
 * ```ts
 * const apply = (key: Tensor) => randomBits(key, [2]);
 * const result = await evaluate(apply, referenceBackend())(randomKey(1));
 * console.log(result.dtype); // u32
 * ```
 */
export const randomBits = (key: Tensor, shape: Shape): Tensor => {
  requireShape("randomBits", shape);
  return emitOne("random-bits", [key], { shape: [...shape] });
};

/**
 * Derives a new key from a key and a number, such as the step number or a layer index: `threefry(key, (data, 1))`.
 *
 * @example
 * ```ts
 * const result = await evaluate((key: Tensor) => foldIn(key, 7), referenceBackend())(randomKey(1));
 * console.log(result.shape); // [2]
 * ```
 */
export const foldIn = (key: Tensor, data: Tensor | number): Tensor => {
  requireOperands("foldIn", [key, data], { numbers: true });
  return emitOne("fold-in", [key, typeof data === "number" ? full([], data, "u32") : cast(data, "u32")]);
};

/**
 * Derives `count` independent keys from a key.
 *
 * @example
 * ```ts
 * const apply = (key: Tensor) => uniform(splitKey(key)[1]!, [2]);
 * const result = await evaluate(apply, referenceBackend())(randomKey(1));
 * console.log(result.shape); // [2]
 * ```
 */
export const splitKey = (key: Tensor, count = 2): Tensor[] => {
  requireOperands("splitKey", [key]);
  if (!(Number.isInteger(count) && count >= 0 && count < 2 ** 32))
    throw new ArgumentError(`splitKey: its count is ${describe(count)}; pass the number of keys, a whole number`);
  return Array.from({ length: count }, (_, i) => foldIn(key, i));
};

/**
 * Converts the upper 24 bits of each u32 word to a fraction in [0, 1). The fractions are exact in f32, so all backends
 * generate equal numbers.
 */
const fraction = (bits: Tensor): Tensor => multiply(cast(shiftRight(bits, 8), "f32"), 2 ** -24);

/**
 * Generates uniform f32 numbers in [low, high), in steps of `(high - low) / 2²⁴` from `low`.
 *
 * @example
 * ```ts
 * const apply = (key: Tensor) => uniform(key, [2, 3]);
 * const result = await evaluate(apply, referenceBackend())(randomKey(1));
 * console.log(result.shape); // [2, 3]
 * ```
 */
export const uniform = (
  key: Tensor,
  shape: Shape,
  options: { readonly low?: number; readonly high?: number } = {},
): Tensor => {
  const { low = 0, high = 1 } = checkOptions("uniform(key, shape)", options, { high: true, low: true });
  checkNumber("uniform", "low", low, { from: -Infinity, usual: 0 });
  checkNumber("uniform", "high", high, { from: -Infinity, usual: 1 });
  const unit = fraction(randomBits(key, shape));
  return low === 0 && high === 1 ? unit : add(multiply(unit, high - low), low);
};

/**
 * Generates normally distributed f32 numbers with the given mean (default: 0) and standard deviation (default: 1), by
 * the Box-Muller transform: `z = √(-2 ln u₁) · cos 2πu₂`, with u₁ in (0, 1], so |z| stays below 5.8.
 * Cost: two random words per value.
 * @example
 * ```ts
 * const apply = (key: Tensor) => normal(key, [2, 3]);
 * const result = await evaluate(apply, referenceBackend())(randomKey(1));
 * console.log(result.shape); // [2, 3]
 * ```
 */
export const normal = (
  key: Tensor,
  shape: Shape,
  options: { readonly mean?: number; readonly deviation?: number } = {},
): Tensor => {
  const { mean = 0, deviation = 1 } = checkOptions("normal(key, shape)", options, { deviation: true, mean: true });
  checkNumber("normal", "mean", mean, { from: -Infinity, usual: 0 });
  checkNumber("normal", "deviation", deviation, { from: 0, usual: 1 });
  const radius = sqrt(multiply(log(add(uniform(foldIn(key, 0), shape), 2 ** -24)), -2));
  const z = multiply(radius, cos(multiply(uniform(foldIn(key, 1), shape), 2 * Math.PI)));
  return mean === 0 && deviation === 1 ? z : add(multiply(z, deviation), mean);
};

/**
 * Generates random bools that are true with probability `probability`.
 *
 * @example
 * ```ts
 * const apply = (key: Tensor) => bernoulli(key, 0.5, [4]);
 * const result = await evaluate(apply, referenceBackend())(randomKey(1));
 * console.log(result.toNumbers()); // [0, 0, 1, 1]
 * ```
 */
export const bernoulli = (key: Tensor, probability: number | Tensor, shape: Shape): Tensor =>
  less(uniform(key, shape), probability);

/**
 * Sets each element to 0 with probability `rate`, and divides the remaining elements by `1 - rate`, so that the
 * expectation is unchanged.
 *
 * @throws ArgumentError unless 0 ≤ rate < 1.
 * @example
 * ```ts
 * const apply = (x: Tensor, key: Tensor) => dropout(x, 0.5, key);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 1, 1, 1]), randomKey(1));
 * console.log(result.toNumbers()); // [0, 0, 2, 2]
 * ```
 * Source: Srivastava et al., Dropout, JMLR 15 (2014), in the inverted form.
 */
export const dropout = (x: Tensor, rate: number, key: Tensor): Tensor => {
  if (!(rate >= 0 && rate < 1))
    throw new ArgumentError(
      `dropout: rate ${rate} is not a probability below 1; use 0 ≤ rate < 1, 0 to keep everything`,
    );
  requireOperands("dropout", [x, key]);
  return rate === 0 ? x : where(bernoulli(key, 1 - rate, x.shape), multiply(x, 1 / (1 - rate)), 0);
};

/**
 * Samples one class (i32) per row from unnormalized log-probabilities along the last dimension, by the Gumbel-max
 * trick.
 *
 * @example
 * ```ts
 * const key = randomKey(1);
 * const logits = NdArray.from([0, 100], [1, 2]);
 * const apply = (key: Tensor, logits: Tensor) => categorical(key, logits);
 * const result = await evaluate(apply, referenceBackend())(key, logits);
 * console.log(result.toNumbers()); // [1]
 * ```
 */
export const categorical = (key: Tensor, logits: Tensor): Tensor => {
  requireOperands("categorical", [key, logits]);
  // A 23-bit integer plus 0.5, scaled to a number strictly between 0 and 1; exact in f32.
  const inside = multiply(add(cast(shiftRight(randomBits(key, logits.shape), 9), "f32"), 0.5), 2 ** -23);
  return argmax(add(logits, negate(log(negate(log(inside))))));
};
