export { type ChoiceStore, webChoiceStore } from "./autotune/choice-store.ts";
export type { MatmulModel, RankedProduct, SelectionQuality } from "./autotune/matmul-model.ts";
export type { MeasureOptions, RejectedVariant } from "./autotune/measure-matmul.ts";
export { tuneMatmul, type TunedMatmul, type TuneOptions } from "./autotune/tune-matmul.ts";
export { type WebGpuDevice, type DeviceOptions, optionalFeatures, type OptionalFeature } from "./device.ts";
export { AdapterError, DeviceLostError, DeviceMemoryError, WebGpuNotInstalledError } from "./errors.ts";
export type { HostMemory } from "./host-transfer.ts";
export type {
  Binding,
  BindingSource,
  KernelChoices,
  DeviceFacts,
  Kernel as WebGpuKernel,
  KernelPlan,
  MatmulRequest,
  Pass,
  SubgroupMatrixShape,
} from "./kernel.ts";
export type { KernelTable as WebGpuKernelTable } from "./kernel-table.ts";
export { minimalDevice } from "./minimal-device.ts";
export { unsupportedOnWebGpu } from "./support.ts";
export { type ListedShader, shadersOf } from "./shaders-of.ts";
export {
  createWebGpuBackend,
  planForWebGpu,
  prepareForWebGpu,
  type WebGpuBackend,
  type WebGpuBackendOptions,
} from "./webgpu-backend.ts";
