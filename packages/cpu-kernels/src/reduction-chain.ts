import { bytesPerElement } from "@skein/tensor-core";
import type { KernelNode, ReductionStep } from "@skein/tensor-core/backend";

/** Returns the size in bytes of each intermediate result, aligned to 16 bytes. */
export const intermediateBytes = (node: KernelNode, steps: readonly ReductionStep[]): number[] =>
  steps
    .slice(0, -1)
    .map(({ outer, inner }) => Math.ceil((outer * inner * bytesPerElement[node.inputs[0]!.dtype]) / 16) * 16);

/** Returns a function that runs `fold` for each step in sequence. `scratch` holds the intermediate results. */
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

/** Returns the sum of `intermediateBytes`. */
export const chainScratchBytes = (node: KernelNode, steps: readonly ReductionStep[]): number =>
  intermediateBytes(node, steps).reduce((total, size) => total + size, 0);
