import { add, cast, divide, minimum, multiply, subtract, type Tensor, zipTrees } from "@skein/tensor-core";
import type { Parts } from "./train-state.ts";

/**
 * Computes the moving average of parameters after an update: `mean + (1 − d)(params − mean)`. The decay d grows to the
 * job's decay: d = `min(decay, t / (9 + t))` after `t` updates, so that the initial parameters lose their weight
 * quickly. Traced. Without a decay, returns `mean` unchanged.
 *
 * Source: Polyak and Juditsky 1992; the growing decay follows TensorFlow's ExponentialMovingAverage.
 *
 * @param updates Number of updates, including this update, u32 scalar.
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
