import type { Problem } from "./problem.ts";
import { readProblem } from "./problem.ts";

/** f64 product of the two matrices of a problem folder. */
const product = (folder: string): Float64Array => {
  const { a, b } = readProblem(folder).values;
  const size = a!.shape[0]!;
  const result = new Float64Array(size * size);
  for (let i = 0; i < size; i++) {
    for (let k = 0; k < size; k++) {
      const scale = a!.data[i * size + k]!;
      for (let j = 0; j < size; j++) result[i * size + j]! += scale * b!.data[k * size + j]!;
    }
  }
  return result;
};

const relativeTolerance = 2e-3;

/**
 * Say what is wrong with a contestant's numbers, or nothing when they may be timed: a product must equal the f64 one, losses of
 * training steps must fall and equal those of the contestants before (`agreed`) within 0.2 %.
 */
export const complaint = (problem: Problem, folder: string, checks: readonly number[], agreed?: readonly number[]): string | undefined => {
  if (problem.kind === "matmul") {
    const expected = product(folder);
    if (checks.length !== expected.length) return `returned ${checks.length} elements, not ${expected.length}`;
    // Sums of 512 products of numbers below 1: f32 rounding stays under 512 · 2^-24 · |a||b|.
    const worst = checks.reduce((maximum, value, i) => Math.max(maximum, Math.abs(value - expected[i]!)), 0);
    return worst <= 1e-3 ? undefined : `differs from the f64 product by ${worst}`;
  }
  if (!checks.every(Number.isFinite)) return `a loss is not finite: ${checks.join(" ")}`;
  if (!(checks.at(-1)! < checks[0]!)) return `the loss does not fall: ${checks.join(" ")}`;
  const differing = agreed?.findIndex((loss, i) => !(Math.abs(loss - checks[i]!) <= relativeTolerance * Math.abs(loss))) ?? -1;
  return differing === -1 ? undefined : `loss ${checks[differing]} at step ${differing} differs from the others' ${agreed![differing]}`;
};
