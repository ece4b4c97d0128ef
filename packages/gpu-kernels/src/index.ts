export { type Device, type DeviceOptions, wishedFeatures, type WishedFeature } from "./device.ts";
export { AdapterError, DeviceLostError, DeviceMemoryError } from "./errors.ts";
export type { HostMemory } from "./host-transfer.ts";
export type { Choices, DeviceFacts, MatmulRequest, SubgroupMatrixShape } from "./kernel.ts";
export { reasonsAgainst } from "./lower.ts";
export { createWebGpuBackend, prepareForWebGpu, type WebGpuBackend, type WebGpuBackendOptions } from "./webgpu-backend.ts";
