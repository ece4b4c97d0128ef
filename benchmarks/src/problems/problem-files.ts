import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Problem } from "./problem.ts";
import { fill, type LoadedProblem } from "./values.ts";

/** Writes the tensors of a problem to a folder under `folder`, as raw little-endian files next to a manifest. */
export const writeProblem = (problem: Problem, folder: string): string => {
  const target = join(folder, problem.name);
  mkdirSync(target, { recursive: true });
  writeFileSync(join(target, "manifest.json"), JSON.stringify(problem));
  problem.tensors.forEach((tensor, seed) =>
    writeFileSync(join(target, `${tensor.name}.raw`), new Uint8Array(fill(tensor, seed).buffer)),
  );
  return target;
};

/** Reads a problem: its manifest and its tensors by name. */
export const readProblem = (folder: string): LoadedProblem => {
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
