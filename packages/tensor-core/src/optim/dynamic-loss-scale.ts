import { ArgumentError } from "../errors.ts";
import { checkOptions } from "../options.ts";
import { add, equal, full, maximum, minimum as minimumOf, multiply, where } from "../functions/elementwise.ts";
import type { Tensor } from "../graph/tensor.ts";

export interface LossScaleOptions {
  /** Loss scale of the first step. Default: 1024. */
  readonly initial?: number;
  /** Number of consecutive steps without overflow after which the scale doubles. Default: 2000. */
  readonly growthInterval?: number;
  /** Minimum loss scale. Default: 1. */
  readonly minimum?: number;
  /** Maximum loss scale. Default: 2²⁴, or `initial` if `initial` is larger. */
  readonly maximum?: number;
}

export interface LossScaleState {
  /** Current loss scale, f32 scalar. */
  readonly scale: Tensor;
  /** Number of steps without overflow since the last change of the scale, u32 scalar. */
  readonly soundSteps: Tensor;
  /** Total number of skipped steps, u32 scalar. */
  readonly skippedSteps: Tensor;
}

/** Loss scale and its update rule. */
export interface LossScale {
  readonly minimum: number;
  init(): LossScaleState;
  /** Returns the state after a step. @param sound Whether all gradients of the step are finite, bool scalar. */
  update(state: LossScaleState, sound: Tensor): LossScaleState;
}

/**
 * Creates a dynamic loss scale, which multiplies the loss by a number as large as f16 gradients allow, so that small
 * gradients do not underflow to 0. If gradients overflow, the step is skipped and the scale is halved. After
 * `growthInterval` consecutive steps without overflow, the scale is doubled. The scale is a power of two, so scaling
 * does not change the mantissa of gradients.
 *
 * The scale has a maximum, because with an infinite scale all later steps would overflow. The initial scale is low, so
 * that the first step, which may include one-time initialization, is not skipped.
 *
 * @throws ArgumentError if a scale is not a positive power of two, or if `maximum` is below `initial`.
 * @example
 * ```ts
 * const lossScale = dynamicLossScale({ initial: 1024 });
 * console.log(Object.keys(lossScale)); // ['minimum', 'init', 'update']
 * ```
 * Source: Micikevicius et al. 2017, arXiv:1710.03740, §3.2; growth interval of PyTorch's GradScaler, maximum of NVIDIA
 * Apex.
 */
export const dynamicLossScale = (options: LossScaleOptions = {}): LossScale => {
  const {
    initial = 1024,
    growthInterval = 2000,
    minimum = 1,
    maximum: greatest = Math.max(initial, 2 ** 24),
  } = checkOptions("dynamicLossScale()", options, {
    initial: true,
    growthInterval: true,
    minimum: true,
    maximum: true,
  });
  if (!Number.isInteger(growthInterval) || growthInterval < 1)
    throw new ArgumentError(
      `dynamicLossScale: growthInterval is ${growthInterval}, but it must be a number of steps; use a whole number from 1, such as 2000`,
    );
  for (const [name, value] of Object.entries({ initial, minimum, maximum: greatest }))
    if (!(value > 0) || !Number.isInteger(Math.log2(value)))
      throw new ArgumentError(
        `dynamicLossScale: ${name} is ${value}, but it must be a positive power of two; use for example 1024`,
      );
  if (greatest < initial)
    throw new ArgumentError(
      `dynamicLossScale: maximum is ${greatest}, but the scale begins with ${initial}; use a maximum of at least ${initial}`,
    );
  return {
    minimum,
    init: () => ({
      scale: full([], initial),
      soundSteps: full([], 0, "u32"),
      skippedSteps: full([], 0, "u32"),
    }),
    update: ({ scale, soundSteps, skippedSteps }, sound) => {
      const count = add(soundSteps, 1);
      const grows = equal(count, growthInterval);
      return {
        scale: where(
          sound,
          where(grows, minimumOf(multiply(scale, 2), greatest), scale),
          maximum(multiply(scale, 0.5), minimum),
        ),
        soundSteps: where(sound, where(grows, 0, count), 0),
        skippedSteps: where(sound, skippedSteps, add(skippedSteps, 1)),
      };
    },
  };
};
