import type { Sgemm } from "@skein/cpu-kernels";
import type { WasmMemory } from "@skein/tensor-core/backend";
import { loadAddon, openProduct } from "./open-blas.ts";

/** Data that `openBlas` passes to helper threads with postMessage. */
interface ThreadProductData {
  readonly addon: string;
  readonly library: string;
}

/**
 * Opens a library's matrix multiplication in a helper thread. Helper threads of `@skein/cpu-kernels` import this file
 * by its URL and call this function.
 */
export const openInThread = ({ addon, library }: ThreadProductData, memory: WasmMemory): Sgemm =>
  openProduct(loadAddon(addon), library, memory);
