export { Arena, createSharedMemory } from "./arena.ts";
export { type Blas, type Contraction, type ContractionOp, contractionOps, type Sgemm } from "./blas.ts";
export {
  type CpuBackend,
  type CpuBackendOptions,
  createCpuBackend,
  prepareForCpu,
  unsupportedOnCpu,
} from "./cpu-backend.ts";
export { HostError, OutOfMemoryError } from "./errors.ts";
export { javascriptKernel, type JavaScriptKernelRule } from "./javascript-kernel.ts";
export type { Kernel as CpuKernel, KernelCall } from "./kernel.ts";
export type { WasmExports } from "./wasm-exports.ts";
export type { KernelTable as CpuKernelTable } from "./kernel-table.ts";
export { compileWasm, detectBuild, type WasmBuild } from "./wasm-build.ts";
