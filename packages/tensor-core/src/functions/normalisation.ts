import { emit } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkNumber } from "../options.ts";
import { add, multiply, rsqrt, subtract } from "./elementwise.ts";

const checkEpsilon = (op: string, epsilon: number): number => {
  checkNumber(op, "epsilon", epsilon, { from: 0, usual: 1e-5 });
  return epsilon;
};

/**
 * Layer normalization over the last dimension: `(x − mean) / √(variance + ε) · γ + β`; the variance is the mean squared
 * deviation.
 *
 * @param x f32 [..., D].  @param gamma f32 [D].  @param beta f32 [D].
 * @example
 * ```ts
 * const x = NdArray.from([1, 3], [1, 2]);
 * const gamma = NdArray.from([1, 1]);
 * const beta = NdArray.from([0, 0]);
 * const apply = (x: Tensor, gamma: Tensor, beta: Tensor) => layerNorm(x, gamma, beta);
 * const result = await evaluate(apply, referenceBackend())(x, gamma, beta);
 * console.log(result.toNumbers().map(Math.round)); // [-1, 1]
 * ```
 * Source: Ba et al. 2016, arXiv 1607.06450; ε as in PyTorch.
 */
export const layerNorm = (x: Tensor, gamma: Tensor, beta: Tensor, epsilon = 1e-5): Tensor =>
  emit("layer-norm", [x, gamma, beta], { epsilon: checkEpsilon("layerNorm", epsilon) })[0]!;

/**
 * Root-mean-square normalization over the last dimension: `x / √(mean x² + ε) · γ`.
 *
 * @param x f32 [..., D].  @param gamma f32 [D].
 * @example
 * ```ts
 * const x = NdArray.from([3, 3], [1, 2]);
 * const gamma = NdArray.from([1, 1]);
 * const result = await evaluate((x: Tensor, gamma: Tensor) => rmsNorm(x, gamma), referenceBackend())(x, gamma);
 * console.log(result.toNumbers().map(Math.round)); // [1, 1]
 * ```
 * Source: Zhang and Sennrich 2019, arXiv 1910.07467; ε as in Llama.
 */
export const rmsNorm = (x: Tensor, gamma: Tensor, epsilon = 1e-5): Tensor =>
  emit("rms-norm", [x, gamma], { epsilon: checkEpsilon("rmsNorm", epsilon) })[0]!;

/**
 * Result of batch normalization in training. `mean` and `variance` are inputs for running averages; no gradient flows
 * through `mean` and `variance`.
 */
export interface BatchNormResult {
  readonly y: Tensor;
  /** Mean of each channel over the batch, f32 [C]. */
  readonly mean: Tensor;
  /** Biased variance of each channel over the batch (divided by n, not n − 1), f32 [C]. */
  readonly variance: Tensor;
}

/**
 * Batch normalization of the channels (last dimension) with the statistics of this batch: `(x − mean) / √(variance + ε)
 * · γ + β`.
 *
 * @param x f32 [..., C], images as [N, H, W, C].  @param gamma f32 [C].  @param beta f32 [C].
 * @example
 * ```ts
 * const x = NdArray.from([1, 3], [2, 1]);
 * const gamma = NdArray.from([1]);
 * const beta = NdArray.from([0]);
 * const apply = (x: Tensor, gamma: Tensor, beta: Tensor) => batchNorm(x, gamma, beta).y;
 * const result = await evaluate(apply, referenceBackend())(x, gamma, beta);
 * console.log(result.toNumbers().map(Math.round)); // [-1, 1]
 * ```
 * Source: Ioffe and Szegedy 2015, arXiv 1502.03167.
 */
export const batchNorm = (x: Tensor, gamma: Tensor, beta: Tensor, epsilon = 1e-5): BatchNormResult => {
  const [y, mean, variance] = emit("batch-norm", [x, gamma, beta], { epsilon: checkEpsilon("batchNorm", epsilon) });
  return { y: y!, mean: mean!, variance: variance! };
};

/**
 * Batch normalization with given statistics, for inference: applies one scale and one shift per channel.
 *
 * @example
 * ```ts
 * const x = NdArray.from([1, 3], [2, 1]);
 * const [one, zero, two] = [1, 0, 2].map((value) => NdArray.from([value]));
 * const apply = (x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor) =>
 *   batchNormInference(x, gamma, beta, mean, variance);
 * const y = await evaluate(apply, referenceBackend())(x, one!, zero!, two!, one!);
 * console.log(y.toNumbers().map(Math.round)); // [-1, 1]
 * ```
 */
export const batchNormInference = (
  x: Tensor,
  gamma: Tensor,
  beta: Tensor,
  mean: Tensor,
  variance: Tensor,
  epsilon = 1e-5,
): Tensor => {
  const scale = multiply(gamma, rsqrt(add(variance, checkEpsilon("batchNormInference", epsilon))));
  return add(multiply(x, scale), subtract(beta, multiply(mean, scale)));
};
