import type { Sgemm } from "@skein/cpu-kernels";
import type { WasmMemory } from "@skein/tensor-core/backend";
import { loadAddon, openProduct } from "./open-blas.ts";

/** What `openBlas` hands to helper threads; may be posted. */
interface ThreadProductData {
  readonly addon: string;
  readonly library: string;
}

/** Called by a helper thread of `@skein/cpu-kernels`, which imports this file by its URL. */
export const openInThread = ({ addon, library }: ThreadProductData, memory: WasmMemory): Sgemm =>
  openProduct(loadAddon(addon), library, memory);
