import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { findBlas } from "@skein/blas/node";
import { startContestant } from "../measure/child.ts";
import type { ContestantProcess } from "../measure/contestant-process.ts";
import type { Field } from "./steps.ts";

const file = (name: string): string => fileURLToPath(new URL(`../contestants/${name}`, import.meta.url));

/** Returns the first Python that can import torch: Debian's Python, or the Python on PATH. Undefined if neither can. */
export const pythonWithTorch = (): string | undefined =>
  ["/usr/bin/python3", "python3"].find(
    (python) => spawnSync(python, ["-c", "import torch"], { stdio: "ignore" }).status === 0,
  );

/**
 * Returns the environment of an implementation with `threads` threads, because libraries would use other thread counts
 * by default.
 */
const threadsOf = (threads: string): Record<string, string> => ({
  SKEIN_BENCH_THREADS: threads,
  OMP_NUM_THREADS: threads,
  OPENBLAS_NUM_THREADS: threads,
  MKL_NUM_THREADS: threads,
});

/**
 * Starts an implementation's process, or returns the reason why the implementation is missing.
 *
 * @param entry Name of an implementation, followed by its number of threads if more than one: `pytorch`,
 *   `pytorch-on-2`.
 */
const start = (entry: string, device: "cpu" | "cuda" = "cpu"): ContestantProcess | { readonly missing: string } => {
  const [name, threads = "1"] = entry.split("-on-") as [string, string?];
  if (name === "skein-blas" && findBlas() === undefined)
    return { missing: "no BLAS was built here: skein-train blas build" };
  if (name !== "pytorch") return startContestant(entry, [process.execPath, file(`${name}.ts`)], threadsOf(threads));
  const python = pythonWithTorch();
  return python === undefined
    ? { missing: "python3-torch is not installed" }
    : startContestant(entry, [python, file("pytorch.py")], { ...threadsOf(threads), SKEIN_TORCH_DEVICE: device });
};

/** Implementations that compute on the CPU: Skein and other libraries. */
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

/**
 * Implementations that compute on the CPU: Skein with the BLAS that was built on this machine, Skein in WebAssembly
 * alone, and PyTorch.
 */
export const onBlas: Field = {
  ours: "skein-blas",
  peers: ["skein", "pytorch"],
  start: (name) => start(name),
  targets: { "mlp-step": { pytorch: 1 }, "cnn-step": { pytorch: 1 }, "gpt-step": { pytorch: 1 } },
};

/** Required minimum speed-up on two cores. */
const speedUp = 1.7;

/**
 * Returns the implementations that compute on two threads: Skein on two threads, Skein on one thread, and PyTorch on
 * two threads. `skein-blas` uses the BLAS that was built on this machine.
 */
export const onTwoThreads = (ours: "skein" | "skein-blas"): Field => ({
  ours: `${ours}-on-2`,
  peers: [ours, "pytorch-on-2"],
  start: (name) => start(name),
  targets: { "cnn-step": { [ours]: speedUp }, "gpt-step": { [ours]: speedUp } },
});

/** Implementations that compute on this machine's GPU: Skein and PyTorch. */
export const onGpu: Field = {
  ours: "skein-webgpu",
  peers: ["pytorch"],
  start: (name) => start(name, "cuda"),
  targets: { "gemm-4096-f16": { pytorch: 0.5 } },
};
