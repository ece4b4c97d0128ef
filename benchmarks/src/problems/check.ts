import type { Problem } from "./problem.ts";
import { readProblem } from "./problem-files.ts";
import { sampledPositions } from "./sample.ts";

/** Returns sampled elements of the f64 product of a problem's two matrices. */
const product = (folder: string): number[] => {
  const { a, b } = readProblem(folder).values;
  const size = a!.shape[0]!;
  return sampledPositions(size * size).map((position) => {
    const [row, column] = [Math.floor(position / size), position % size];
    let sum = 0;
    for (let k = 0; k < size; k++) sum += a!.data[row * size + k]! * b!.data[k * size + column]!;
    return sum;
  });
};

const relativeTolerance = 2e-3;

/**
 * Describes the error in an implementation's results; undefined if the implementation may be timed. A product must
 * equal the f64 product. Losses of training steps must fall, and must be within 0.2 % of the losses of previous
 * implementations (`agreed`).
 */
export const complaint = (
  problem: Problem,
  folder: string,
  checks: readonly number[],
  agreed?: readonly number[],
): string | undefined => {
  if (problem.kind === "matmul") {
    const expected = product(folder);
    if (checks.length !== expected.length) return `returned ${checks.length} elements, not ${expected.length}`;
    const worst = checks.reduce((maximum, value, i) => Math.max(maximum, Math.abs(value - expected[i]!)), 0);
    // For sums of n products of numbers below 1, the rounding error stays well below n · 2^-24 · |a||b| in f32, and
    // below n · 2^-11 with f16 operands.
    const allowed = Math.max(512, problem.tensors[0]!.shape[0]!) * (problem.precision === "f16" ? 2 ** -11 : 2e-6);
    return worst <= allowed ? undefined : `differs from the f64 product by ${worst}`;
  }
  if (!checks.every(Number.isFinite)) return `a loss is not finite: ${checks.join(" ")}`;
  if (!(checks.at(-1)! < checks[0]!)) return `the loss does not fall: ${checks.join(" ")}`;
  const differing =
    agreed?.findIndex((loss, i) => !(Math.abs(loss - checks[i]!) <= relativeTolerance * Math.abs(loss))) ?? -1;
  return differing === -1
    ? undefined
    : `loss ${checks[differing]} at step ${differing} differs from the others' ${agreed![differing]}`;
};
