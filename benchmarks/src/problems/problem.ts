import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface ProblemTensor {
  readonly name: string;
  readonly dtype: "f32" | "i32";
  readonly shape: readonly number[];
}

/** What every contestant computes, and from which numbers: all read the same files, so results are comparable. */
export interface Problem {
  readonly name: string;
  readonly kind: "matmul" | "training-step";
  readonly learningRate: number;
  readonly tensors: readonly ProblemTensor[];
}

const elements = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);

/** Uniform in [-1, 1) from a counter, so that a tensor does not depend on the order in which tensors are made. */
const uniform = (index: number, seed: number): number => {
  let bits = (Math.imul(index, 0x9e3779b1) ^ Math.imul(seed + 1, 0x85ebca6b)) >>> 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x7feb352d) >>> 0;
  bits = Math.imul(bits ^ (bits >>> 15), 0x846ca68b) >>> 0;
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 31 - 1;
};

const fill = (tensor: ProblemTensor, seed: number): Float32Array | Int32Array => {
  const count = elements(tensor.shape);
  if (tensor.dtype === "i32") return Int32Array.from({ length: count }, (_, i) => Math.floor((uniform(i, seed) + 1) * 5));
  if (tensor.name.startsWith("bias")) return new Float32Array(count);
  // He's uniform initialisation for weights; data keeps the range [-1, 1).
  const fanIn = elements(tensor.shape.slice(0, -1));
  const bound = tensor.name.startsWith("weight") ? Math.sqrt(6 / fanIn) : 1;
  return Float32Array.from({ length: count }, (_, i) => uniform(i, seed) * bound);
};

/** Write the tensors of a problem below `folder` as raw little-endian files beside a manifest. */
export const writeProblem = (problem: Problem, folder: string): string => {
  const target = join(folder, problem.name);
  mkdirSync(target, { recursive: true });
  writeFileSync(join(target, "manifest.json"), JSON.stringify(problem));
  problem.tensors.forEach((tensor, seed) => writeFileSync(join(target, `${tensor.name}.raw`), new Uint8Array(fill(tensor, seed).buffer)));
  return target;
};

export interface LoadedTensor extends ProblemTensor {
  readonly data: Float32Array | Int32Array;
}

/** Read a problem back: its manifest and its tensors by name. */
export const readProblem = (folder: string): Problem & { readonly values: Readonly<Record<string, LoadedTensor>> } => {
  const problem: Problem = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
  const values = problem.tensors.map((tensor) => {
    const bytes = new Uint8Array(readFileSync(join(folder, `${tensor.name}.raw`)));
    return [
      tensor.name,
      { ...tensor, data: tensor.dtype === "i32" ? new Int32Array(bytes.buffer) : new Float32Array(bytes.buffer) },
    ] as const;
  });
  return { ...problem, values: Object.fromEntries(values) };
};
