// Shapes: E experts.
import { add, divide, full, multiply, subtract, type Tensor, zeros } from "@skein/tensor-core";

/**
 * The loads of recent steps in a mean in which older steps count less and less: what `decayedCounts` remembers, as
 * tensors, for a step that runs on a device and for its checkpoint.
 */
export interface LoadMemory {
  /** f32, choices of each expert in a step; 0 before the first one. */
  readonly meanLoad_E: Tensor;
  /** f32 []: what the steps so far count together; the last one counts 1. */
  readonly loadWeight: Tensor;
}

/** A memory of no step. */
export const initLoadMemory = (numExperts: number): LoadMemory => ({
  meanLoad_E: zeros([numExperts]),
  loadWeight: full([], 0),
});

/**
 * Remember one more step: `w' = decay · w + 1`, `mean' = mean + (load − mean) / w'`, a mean from the first step on.
 *
 * @param load_E f32, choices of each expert, of the tokens of all ranks.
 * @param decay what a step counts once another has come, against before: in [0, 1].
 */
export const rememberLoad = ({ meanLoad_E, loadWeight }: LoadMemory, load_E: Tensor, decay: number): LoadMemory => {
  const weight = add(multiply(loadWeight, decay), 1);
  return { meanLoad_E: add(meanLoad_E, divide(subtract(load_E, meanLoad_E), weight)), loadWeight: weight };
};
