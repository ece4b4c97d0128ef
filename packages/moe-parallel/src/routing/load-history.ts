// Shapes: E experts.
import { add, divide, full, multiply, subtract, type Tensor, zeros } from "@skein/tensor-core";

/**
 * Decaying mean of the loads of recent steps: the tensor version of `decayedCounts`, for steps on a device and for
 * checkpoints.
 */
export interface LoadHistory {
  /** Mean number of choices of each expert per step, f32; 0 before the first step. */
  readonly meanLoad_E: Tensor;
  /** Total weight of the steps so far, f32 []; the last step has weight 1. */
  readonly loadWeight: Tensor;
}

/** Returns the load history before the first step. */
export const initLoadHistory = (numExperts: number): LoadHistory => ({
  meanLoad_E: zeros([numExperts]),
  loadWeight: full([], 0),
});

/**
 * Add the load of one more step: `w' = decay · w + 1`, `mean' = mean + (load − mean) / w'`, a mean from the first step
 * on.
 *
 * @param load_E number of choices of each expert over the tokens of all ranks, f32.
 * @param decay decay factor per step, in [0, 1].
 */
export const recordLoad = ({ meanLoad_E, loadWeight }: LoadHistory, load_E: Tensor, decay: number): LoadHistory => {
  const weight = add(multiply(loadWeight, decay), 1);
  return { meanLoad_E: add(meanLoad_E, divide(subtract(load_E, meanLoad_E), weight)), loadWeight: weight };
};
