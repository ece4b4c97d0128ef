import type { WasmMemory, WasmModule } from "@skein/tensor-core";
import { relaxedSimd, simd, threads } from "wasm-feature-detect";
import { HostError } from "./errors.ts";
import type { WasmExports } from "./kernel.ts";

/** The three builds of one source: fused multiply-add on vectors, vectors, neither. */
export type WasmBuild = "relaxed" | "simd" | "scalar";

const sources: { readonly [build in WasmBuild]: () => Promise<{ wasmBase64: string }> } = {
  relaxed: () => import("./generated/relaxed.ts"),
  simd: () => import("./generated/simd.ts"),
  scalar: () => import("./generated/scalar.ts"),
};

/** The fastest build that this host runs. */
export const detectBuild = async (): Promise<WasmBuild> => {
  if (!(await threads()))
    throw new HostError(
      "WebAssembly threads are missing here: in a browser, serve the page with COOP/COEP headers (cross-origin isolation); in Node, use 22.18 or later",
    );
  if (await relaxedSimd()) return "relaxed";
  return (await simd()) ? "simd" : "scalar";
};

/** Compile a build. The module can be posted to workers, which saves them the compilation. */
export const compileWasm = async (build: WasmBuild): Promise<WasmModule> => {
  const { wasmBase64 } = await sources[build]();
  return WebAssembly.compile(Uint8Array.from(atob(wasmBase64), (character) => character.charCodeAt(0)));
};

/** One instance per thread; all instances of a process share `memory`. */
export const instantiateWasm = (module: WasmModule, memory: WasmMemory): WasmExports =>
  new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as WasmExports;
