import { add, cast, divide, minimum, multiply, subtract, type Tensor, zipTrees } from "@skein/tensor-core";
import type { Parts } from "./train-state.ts";

/**
 * The running mean of parameters after an update: `mean + (1 − d)(params − mean)`, with a share of the past `d` that
 * grows to the job's, `min(decay, t / (9 + t))` after `t` updates, so that the initial parameters are soon forgotten.
 * Traced. Without a decay, returns `mean` unchanged.
 *
 * Source: Polyak and Juditsky 1992; the growing share is that of TensorFlow's ExponentialMovingAverage.
 *
 * @param updates number of updates, including this one, u32 scalar.
 */
export const updatedAverage = (
  { averageDecay }: Pick<Parts, "averageDecay">,
  mean: unknown,
  params: unknown,
  updates: Tensor,
): unknown => {
  if (averageDecay === undefined) return mean;
  const count = cast(updates, "f32");
  const fresh = subtract(1, minimum(averageDecay, divide(count, add(count, 9))));
  return zipTrees((before: Tensor, now: Tensor) => add(before, multiply(fresh, subtract(now, before))), mean, params);
};
