// WebGPU in our interfaces, as the settings of whoever uses us know it: `lib: dom`, `lib: webworker` and @webgpu/types
// have these names, others have not, and there they would be errors in our declarations. Where they are known, these
// are the very same types.

/** `GPU`: what `navigator.gpu` is. */
export type Gpu = typeof globalThis extends { GPU: { prototype: infer Known } } ? Known : object;

/** `GPUAdapter`. */
export type GpuAdapter = typeof globalThis extends { GPUAdapter: { prototype: infer Known } } ? Known : object;

/** `GPUDevice`. */
export type GpuDevice = typeof globalThis extends { GPUDevice: { prototype: infer Known } } ? Known : object;
