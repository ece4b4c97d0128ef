export { Arena, createSharedMemory } from "./arena.ts";
export { type CpuBackend, type CpuBackendOptions, createCpuBackend, prepareForCpu, reasonsAgainst } from "./cpu-backend.ts";
export { HostError, OutOfMemoryError } from "./errors.ts";
export { compileWasm, detectBuild, type WasmBuild } from "./wasm-build.ts";
