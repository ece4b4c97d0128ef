import { bytesPerElement, elementCount, type KernelNode } from "@skein/tensor-core";


/** One kernel call: fold the middle of a dense [outer, size, inner]. */
export interface ReductionStep {
  readonly outer: number;
  readonly size: number;
  readonly inner: number;
}

const product = (sizes: readonly number[]): number => elementCount(sizes);

/** Fold any set of dimensions by folding one run of neighbours after the other, innermost first. At least one step. */
export const reductionSteps = (shape: readonly number[], dims: readonly number[]): ReductionStep[] => {
  const runs: { size: number; reduced: boolean }[] = [];
  shape.forEach((size, dim) => {
    if (size === 1) return;
    const reduced = dims.includes(dim);
    if (runs.at(-1)?.reduced === reduced) runs.at(-1)!.size *= size;
    else runs.push({ size, reduced });
  });
  const steps: ReductionStep[] = [];
  let inner = 1;
  while (runs.length > 0) {
    const { size, reduced } = runs.pop()!;
    if (reduced) steps.push({ outer: product(runs.map((run) => run.size)), size, inner });
    else inner *= size;
  }
  return steps.length > 0 ? steps : [{ outer: inner, size: 1, inner: 1 }];
};

/** Bytes of the results between steps, each aligned to 16. */
export const intermediateBytes = (node: KernelNode, steps: readonly ReductionStep[]): number[] =>
  steps.slice(0, -1).map(({ outer, inner }) => Math.ceil((outer * inner * bytesPerElement[node.inputs[0]!.dtype]) / 16) * 16);

/** Run `fold` step by step. `scratch` takes the results between steps. */
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

/** Sum of `intermediateBytes`. */
export const chainScratchBytes = (node: KernelNode, steps: readonly ReductionStep[]): number =>
  intermediateBytes(node, steps).reduce((total, size) => total + size, 0);
