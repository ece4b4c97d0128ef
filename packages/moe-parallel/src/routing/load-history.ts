// Shapes: E experts.
import { add, divide, full, multiply, subtract, type Tensor, zeros } from "@skein/tensor-core";

/** Decaying mean of recent loads: the tensor version of `decayedCounts`, for steps on a device and for checkpoints. */
export interface LoadHistory {
  /** Mean number of choices per expert and step, f32; 0 before the first step. */
  readonly meanLoad_E: Tensor;
  /** Total weight of all steps so far, f32 []; the last step has weight 1. */
  readonly loadWeight: Tensor;
}

/** Returns the load history before the first step. */
export const initLoadHistory = (numExperts: number): LoadHistory => ({
  meanLoad_E: zeros([numExperts]),
  loadWeight: full([], 0),
});

/**
 * Adds the load of a further step: `w' = decay · w + 1`, `mean' = mean + (load − mean) / w'`. The mean is valid from
 * the first step on.
 *
 * @param load_E number of choices per expert over the tokens of all ranks, f32.
 * @param decay decay factor per step, in [0, 1].
 */
export const recordLoad = ({ meanLoad_E, loadWeight }: LoadHistory, load_E: Tensor, decay: number): LoadHistory => {
  const weight = add(multiply(loadWeight, decay), 1);
  return { meanLoad_E: add(meanLoad_E, divide(subtract(load_E, meanLoad_E), weight)), loadWeight: weight };
};
