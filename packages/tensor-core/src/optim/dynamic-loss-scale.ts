import { ArgumentError } from "../errors.ts";
import { checkOptions } from "../options.ts";
import { add, full, maximum, multiply, where, equal } from "../functions/elementwise.ts";
import type { Tensor } from "../graph/tensor.ts";

export interface LossScaleOptions {
  /** Scale of the first step. Default: 65536. */
  readonly initial?: number;
  /** Sound steps in a row after which the scale doubles. Default: 2000. */
  readonly growthInterval?: number;
  /** The scale never falls below. Default: 1. */
  readonly minimum?: number;
}

export interface LossScaleState {
  /** f32 scalar. */
  readonly scale: Tensor;
  /** u32 scalar: sound steps since the scale last changed. */
  readonly soundSteps: Tensor;
}

/** What a loss is multiplied by, and how that number changes. */
export interface LossScale {
  readonly minimum: number;
  init(): LossScaleState;
  /** @param sound bool scalar: whether all gradients of the step were finite. */
  update(state: LossScaleState, sound: Tensor): LossScaleState;
}

/**
 * Multiply the loss by as large a number as f16 gradients stand, so that the small ones do not vanish: a step whose
 * gradients overflow is to be skipped and halves the scale, `growthInterval` sound steps in a row double it. Powers of
 * two leave the gradients' bits alone.
 *
 * @throws ArgumentError for a scale that is no positive power of two.
 * Source: Micikevicius et al. 2017, arXiv:1710.03740, §3.2; the constants are those of PyTorch's GradScaler.
 */
export const dynamicLossScale = (options: LossScaleOptions = {}): LossScale => {
  const {
    initial = 65_536,
    growthInterval = 2000,
    minimum = 1,
  } = checkOptions("dynamicLossScale()", options, { initial: true, growthInterval: true, minimum: true });
  if (!Number.isInteger(growthInterval) || growthInterval < 1)
    throw new ArgumentError(
      `dynamicLossScale: growthInterval is ${growthInterval}, but it counts steps; use a whole number from 1, such as 2000`,
    );
  for (const [name, value] of Object.entries({ initial, minimum }))
    if (!(value > 0) || !Number.isInteger(Math.log2(value)))
      throw new ArgumentError(
        `dynamicLossScale: ${name} is ${value}, but a scale is a positive power of two; use 65536`,
      );
  return {
    minimum,
    init: () => ({ scale: full([], initial), soundSteps: full([], 0, "u32") }),
    update: ({ scale, soundSteps }, sound) => {
      const count = add(soundSteps, 1);
      const grows = equal(count, growthInterval);
      return {
        scale: where(sound, where(grows, multiply(scale, 2), scale), maximum(multiply(scale, 0.5), minimum)),
        soundSteps: where(sound, where(grows, 0, count), 0),
      };
    },
  };
};
