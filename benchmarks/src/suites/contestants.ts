import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { findBlas } from "@skein/blas/node";
import { startContestant } from "../measure/child.ts";
import type { ContestantProcess } from "../measure/contestant-process.ts";
import type { Field } from "./steps.ts";

const file = (name: string): string => fileURLToPath(new URL(`../contestants/${name}`, import.meta.url));

/** The first Python that can import torch: Debian's, or the one on PATH. */
export const pythonWithTorch = (): string | undefined =>
  ["/usr/bin/python3", "python3"].find(
    (python) => spawnSync(python, ["-c", "import torch"], { stdio: "ignore" }).status === 0,
  );

/** Libraries that would take more than one thread otherwise. */
const oneThread = { OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1", MKL_NUM_THREADS: "1" };

/** Start a contestant's process, or say why there is none. */
const start = (name: string, device: "cpu" | "cuda" = "cpu"): ContestantProcess | { readonly missing: string } => {
  if (name === "skein-blas" && findBlas() === undefined)
    return { missing: "no BLAS was built here: skein-train blas build" };
  if (name !== "pytorch") return startContestant(name, [process.execPath, file(`${name}.ts`)]);
  const python = pythonWithTorch();
  return python === undefined
    ? { missing: "python3-torch is not installed" }
    : startContestant(name, [python, file("pytorch.py")], { ...oneThread, SKEIN_TORCH_DEVICE: device });
};

/** Ours on the CPU beside the libraries that compute there. */
export const processes: Field = {
  ours: "skein",
  peers: ["tfjs-wasm", "jax-js", "pytorch"],
  start: (name) => start(name),
  targets: {
    "gemm-512": { "tfjs-wasm": 3 },
    "mlp-step": { "tfjs-wasm": 8, pytorch: 1 },
    "cnn-step": { pytorch: 1 },
  },
};

/** Ours with the BLAS that was built on this machine, beside ours in WebAssembly alone and PyTorch. */
export const onBlas: Field = {
  ours: "skein-blas",
  peers: ["skein", "pytorch"],
  start: (name) => start(name),
  targets: { "mlp-step": { pytorch: 1 }, "cnn-step": { pytorch: 1 }, "gpt-step": { pytorch: 1 } },
};

/** Ours on this machine's GPU, beside PyTorch on it. */
export const onGpu: Field = {
  ours: "skein-webgpu",
  peers: ["pytorch"],
  start: (name) => start(name, "cuda"),
  targets: { "gemm-4096-f16": { pytorch: 0.5 } },
};
