import type { WasmMemory, WasmModule } from "@skein/tensor-core/backend";
import { relaxedSimd, simd } from "wasm-feature-detect";
import { HostError } from "./errors.ts";
import type { WasmExports } from "./wasm-exports.ts";

/** WebAssembly builds of the same source: SIMD with fused multiply-add, SIMD without, and scalar code. */
export type WasmBuild = "relaxed" | "simd" | "scalar";

const sources: { readonly [build in WasmBuild]: () => Promise<{ wasmBase64: string }> } = {
  relaxed: () => import("./generated/relaxed.ts"),
  simd: () => import("./generated/simd.ts"),
  scalar: () => import("./generated/scalar.ts"),
};

/**
 * Whether WebAssembly has shared memory, which the kernels need. A page that is not cross-origin isolated may have
 * shared memory, but cannot share it with another thread.
 */
const hasSharedMemory = (): boolean => {
  try {
    return new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }).buffer.byteLength > 0;
  } catch {
    return false;
  }
};

/**
 * Returns the fastest build that this host supports.
 *
 * @throws HostError if WebAssembly has no shared memory.
 * @example
 * ```ts
 * const module = await compileWasm(await detectBuild());
 * console.log(module instanceof WebAssembly.Module); // true
 * ```
 */
export const detectBuild = async (): Promise<WasmBuild> => {
  if (!hasSharedMemory())
    throw new HostError(
      "WebAssembly has no shared memory here: in a browser, use a newer version, or serve the page with COOP/COEP headers (cross-origin isolation); in Node, use 22.18 or later",
    );
  if (await relaxedSimd()) return "relaxed";
  return (await simd()) ? "simd" : "scalar";
};

/**
 * Compiles a build. The module can be posted to workers, which then need not compile it.
 *
 * @example
 * ```ts
 * const module = await compileWasm("scalar");
 * console.log(module instanceof WebAssembly.Module); // true
 * ```
 */
export const compileWasm = async (build: WasmBuild): Promise<WasmModule> => {
  const { wasmBase64 } = await sources[build]();
  return WebAssembly.compile(Uint8Array.from(atob(wasmBase64), (character) => character.charCodeAt(0)));
};

/** Instantiates a module. Each thread has one instance; all instances of a process share `memory`. */
export const instantiateWasm = (module: WasmModule, memory: WasmMemory): WasmExports =>
  new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as WasmExports;
