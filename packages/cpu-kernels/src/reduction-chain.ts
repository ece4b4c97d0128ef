import { bytesPerElement } from "@skein/tensor-core";
import type { KernelNode, ReductionStep } from "@skein/tensor-core/backend";

/**
 * Returns the size in bytes of each step's result, except the result of the last step. Sizes are rounded up to
 * multiples of 16.
 */
export const intermediateBytes = (node: KernelNode, steps: readonly ReductionStep[]): number[] =>
  steps
    .slice(0, -1)
    .map(({ outer, inner }) => Math.ceil((outer * inner * bytesPerElement[node.inputs[0]!.dtype]) / 16) * 16);

/**
 * Returns a function that runs `fold` step by step. Each step reads the result of the previous step. `scratch` holds
 * the results of all steps except the last.
 */
export const chainSteps = (
  node: KernelNode,
  steps: readonly ReductionStep[],
  fold: (input: number, output: number, step: ReductionStep) => void,
): ((input: number, output: number, scratch: number) => void) => {
  const bytes = intermediateBytes(node, steps);
  const offsets = bytes.map((_, i) => bytes.slice(0, i).reduce((total, size) => total + size, 0));
  return (input, output, scratch) => {
    let from = input;
    steps.forEach((step, i) => {
      const to = i === steps.length - 1 ? output : scratch + offsets[i]!;
      fold(from, to, step);
      from = to;
    });
  };
};

/** Returns the scratch bytes of a chain of reduction steps: the total size of the intermediate results. */
export const chainScratchBytes = (node: KernelNode, steps: readonly ReductionStep[]): number =>
  intermediateBytes(node, steps).reduce((total, size) => total + size, 0);
