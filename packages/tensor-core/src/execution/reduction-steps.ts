import { elementCount } from "../shape.ts";

/** Dense shape viewed as [outer, size, inner], for a reduction or scan along the middle dimension. */
export interface ReductionStep {
  readonly outer: number;
  readonly size: number;
  readonly inner: number;
}

/**
 * Splits a reduction over a set of dimensions into steps, one per group of adjacent dimensions, innermost first.
 * Returns at least one step.
 */
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
    if (reduced) steps.push({ outer: elementCount(runs.map((run) => run.size)), size, inner });
    else inner *= size;
  }
  return steps.length > 0 ? steps : [{ outer: inner, size: 1, inner: 1 }];
};

/** Views a dense shape as [outer, size, inner], with dimension `dim` in the middle. */
export const alongDim = (shape: readonly number[], dim: number): ReductionStep => ({
  outer: elementCount(shape.slice(0, dim)),
  size: shape[dim]!,
  inner: elementCount(shape.slice(dim + 1)),
});
