import { ShapeError } from "../errors.ts";
import { emit, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkNumber, checkOptions } from "../options.ts";
import { elementCount, formatSpec } from "../shape.ts";
import { add, multiply, ones, zeros } from "./elementwise.ts";
import { reshape, transpose } from "./movement.ts";

export interface GroupNormOptions {
  /**
   * Number of groups of adjacent channels. 1: all channels of a sample are normalized together. C: each channel is
   * normalized separately (instance norm).
   */
  readonly groups: number;
  /** Constant ε added to the variance. Default: 1e-5, as in PyTorch. */
  readonly epsilon?: number;
}

/**
 * Group normalization: `(x − mean) / √(variance + ε) · γ + β` with the mean and variance over all pixels and channels
 * of a group, per sample. Unlike batch normalization, group normalization needs no running statistics, and samples do
 * not affect each other.
 *
 * @param x f32 [N, ..., C], images as [N, H, W, C].
 * @param gamma f32 [C].
 * @param beta f32 [C].
 * @throws ShapeError if channels and groups, γ or β do not match.
 * Cost: one layer normalization over rows with H·W·C / groups entries; with more than one group also two
 * transpositions.
 * @example
 * ```ts
 * const x = NdArray.from([1, 3], [1, 2]);
 * const gamma = NdArray.from([1, 1]);
 * const beta = NdArray.from([0, 0]);
 * const apply = (x: Tensor, gamma: Tensor, beta: Tensor) => groupNorm(x, gamma, beta, { groups: 1 });
 * const result = await evaluate(apply, referenceBackend())(x, gamma, beta);
 * console.log(result.toNumbers().map(Math.round)); // [-1, 1]
 * ```
 * Source: Wu and He 2018, arXiv 1803.08494.
 */
export const groupNorm = (x: Tensor, gamma: Tensor, beta: Tensor, options: GroupNormOptions): Tensor => {
  const { groups, epsilon = 1e-5 } = checkOptions("groupNorm(x, gamma, beta)", options ?? {}, {
    groups: true,
    epsilon: true,
  });
  checkNumber("groupNorm", "epsilon", epsilon, { from: 0, usual: 1e-5 });
  requireOperands("groupNorm", [x, gamma, beta]);
  const channels = x.shape.at(-1) ?? 0;
  if (x.dtype !== "f32" || x.rank < 2)
    throw new ShapeError(
      "groupNorm",
      `takes f32 [N, ..., C], got ${formatSpec(x)}; cast it, or reshape it to 2 dimensions or more`,
    );
  if (!Number.isInteger(groups) || groups < 1 || channels % groups !== 0)
    throw new ShapeError(
      "groupNorm",
      `the ${channels} channels of ${formatSpec(x)} do not split into ${groups} groups; groups must be a positive whole number that divides them`,
    );
  for (const [name, value] of [
    ["gamma", gamma],
    ["beta", beta],
  ] as const)
    if (value.dtype !== "f32" || value.rank !== 1 || value.shape[0] !== channels)
      throw new ShapeError(
        "groupNorm",
        `${name} ${formatSpec(value)} does not match ${formatSpec(x)}; pass one number per channel, f32[${channels}]`,
      );
  const [samples, pixels, own] = [x.shape[0]!, elementCount(x.shape.slice(1, -1)), channels / groups];
  const row = pixels * own;
  const swap = [0, 2, 1, 3];
  const rows = reshape(transpose(reshape(x, [samples, pixels, groups, own]), swap), [samples, groups, row]);
  const [normal] = emit("layer-norm", [rows, ones([row]), zeros([row])], { epsilon });
  const back = reshape(transpose(reshape(normal!, [samples, groups, pixels, own]), swap), x.shape);
  return add(multiply(back, gamma), beta);
};
