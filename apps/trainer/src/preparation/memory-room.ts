import { ConfigError } from "@skein/cli/node";
import { byteLength, flattenTree, type TensorSpec } from "@skein/tensor-core";
import type { Prepared } from "./prepared.ts";

/**
 * Memory limit of a process in bytes: WebAssembly addresses have 32 bits, and all ranks of a process share one
 * WebAssembly memory.
 */
const cpuMemoryBytes = 2 ** 32;

/** Returns the total size of tensors in bytes. */
export const bytesOf = (specs: Iterable<TensorSpec>): number =>
  [...specs].reduce((sum, spec) => sum + byteLength(spec), 0);

/**
 * Throws if a rank's state plus one gradient per trained parameter exceed the memory limit. Called before allocation.
 * Activations are not counted here; the memory plan of the compiled step includes them.
 */
export const requireRoom = ({ job, stateBytes, trained }: Pick<Prepared, "job" | "stateBytes" | "trained">): void => {
  if (job.backend !== "cpu") return; // a device reports insufficient memory itself
  const ranks = job.transport === "threads" ? job.ranks : job.network.ranksPerProcess;
  const needed = ranks * (stateBytes + bytesOf(flattenTree<TensorSpec>(trained).leaves));
  if (needed <= cpuMemoryBytes) return;
  const inGiB = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
  throw new ConfigError([
    `model: parameters, optimizer state and gradients of ${ranks} ${ranks === 1 ? "rank takes" : "ranks take"} ${inGiB(needed)}, but the CPU backend's memory of a process is ${inGiB(cpuMemoryBytes)}; use a smaller model, fewer ranks in a process, or backend: webgpu`,
  ]);
};
