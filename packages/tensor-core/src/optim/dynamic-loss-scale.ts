import { ArgumentError } from "../errors.ts";
import { checkOptions } from "../options.ts";
import { add, equal, full, maximum, minimum as minimumOf, multiply, where } from "../functions/elementwise.ts";
import type { Tensor } from "../graph/tensor.ts";

export interface LossScaleOptions {
  /** Scale of the first step. Default: 1024. */
  readonly initial?: number;
  /** Number of consecutive steps without overflow after which the scale doubles. Default: 2000. */
  readonly growthInterval?: number;
  /** Smallest scale. Default: 1. */
  readonly minimum?: number;
  /** Largest scale that doubling may reach. Default: 2²⁴, or `initial` if that is larger. */
  readonly maximum?: number;
}

export interface LossScaleState {
  /** Current scale, f32 scalar. */
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
  /** @param sound bool scalar: whether all gradients of the step were finite. */
  update(state: LossScaleState, sound: Tensor): LossScaleState;
}

/**
 * Multiply the loss by a number as large as f16 gradients allow, so that small gradients do not become 0. A step whose
 * gradients overflow is skipped and halves the scale; `growthInterval` consecutive steps without overflow double it.
 * Powers of two do not change the mantissa of gradients.
 *
 * The scale has a maximum because an infinite scale would make every later step overflow. The initial scale is low so
 * that the first step, which may do one-time work, is not skipped.
 *
 * @throws ArgumentError for a scale that is not a positive power of two, and a maximum below `initial`.
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
