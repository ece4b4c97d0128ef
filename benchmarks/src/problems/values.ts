import type { Problem, ProblemTensor } from "./problem.ts";

const elements = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);

/**
 * Returns a uniform number in [-1, 1) from a counter, so that a tensor does not depend on the order in which tensors
 * are generated.
 */
const uniform = (index: number, seed: number): number => {
  let bits = (Math.imul(index, 0x9e3779b1) ^ Math.imul(seed + 1, 0x85ebca6b)) >>> 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x7feb352d) >>> 0;
  bits = Math.imul(bits ^ (bits >>> 15), 0x846ca68b) >>> 0;
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 31 - 1;
};

/** Generates the numbers of a tensor, identical on every machine and in every language with 32-bit integers. */
export const fill = (tensor: ProblemTensor, seed: number): Float32Array | Int32Array => {
  const count = elements(tensor.shape);
  if (tensor.dtype === "i32")
    return Int32Array.from({ length: count }, (_, i) => Math.floor((uniform(i, seed) + 1) * 5));
  if (tensor.name.startsWith("bias")) return new Float32Array(count);
  if (tensor.name.startsWith("gain")) return new Float32Array(count).fill(1);
  // He's uniform initialization for weights; data keeps the range [-1, 1).
  const fanIn = elements(tensor.shape.slice(0, -1));
  const bound = tensor.name.startsWith("weight") ? Math.sqrt(6 / fanIn) : 1;
  return Float32Array.from({ length: count }, (_, i) => uniform(i, seed) * bound);
};

export interface LoadedTensor extends ProblemTensor {
  readonly data: Float32Array | Int32Array;
}

/** A problem with its tensors, by tensor name. */
export type LoadedProblem = Problem & { readonly values: Readonly<Record<string, LoadedTensor>> };

/** Generates the tensors of a problem, for a browser page that cannot read files. */
export const withValues = (problem: Problem): LoadedProblem => ({
  ...problem,
  values: Object.fromEntries(
    problem.tensors.map((tensor, seed) => [tensor.name, { ...tensor, data: fill(tensor, seed) }]),
  ),
});
