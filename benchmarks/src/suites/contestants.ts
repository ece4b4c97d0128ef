import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type ContestantProcess, startContestant } from "../measure/child.ts";

const file = (name: string): string => fileURLToPath(new URL(`../contestants/${name}`, import.meta.url));

/** The first Python that can import torch: Debian's, or the one on PATH. */
const pythonWithTorch = (): string | undefined =>
  ["/usr/bin/python3", "python3"].find((python) => spawnSync(python, ["-c", "import torch"], { stdio: "ignore" }).status === 0);

/** Libraries that would take more than one thread otherwise. */
const oneThread = { OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1", MKL_NUM_THREADS: "1" };

export const ours = "skein";

export const peers: readonly string[] = ["tfjs-wasm", "jax-js", "pytorch"];

/** Start a contestant's process, or say why there is none. */
export const start = (name: string): ContestantProcess | { readonly missing: string } => {
  if (name !== "pytorch") return startContestant(name, [process.execPath, file(`${name}.ts`)]);
  const python = pythonWithTorch();
  return python === undefined
    ? { missing: "python3-torch is not installed" }
    : startContestant(name, [python, file("pytorch.py")], oneThread);
};
