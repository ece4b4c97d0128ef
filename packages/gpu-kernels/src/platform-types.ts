// WebGPU types in our public interfaces. `lib: dom`, `lib: webworker` and @webgpu/types define the names of these
// types. In a project without these libraries, the names would be errors in our declarations, so `object` replaces the
// types in such a project. With these libraries, the types below are exactly the library's types.

/** Type of `navigator.gpu`: `GPU`, or `object` without WebGPU types. */
export type Gpu = typeof globalThis extends { GPU: { prototype: infer Known } } ? Known : object;

/** `GPUAdapter`, or `object` without WebGPU types. */
export type GpuAdapter = typeof globalThis extends { GPUAdapter: { prototype: infer Known } } ? Known : object;

/** `GPUDevice`, or `object` without WebGPU types. */
export type GpuDevice = typeof globalThis extends { GPUDevice: { prototype: infer Known } } ? Known : object;
