import type { DeviceFacts } from "./kernel.ts";

/**
 * `DeviceFacts` of a GPU with WebGPU's default limits and without optional features. Every kernel has a plan for such a
 * device.
 */
export const minimalDevice: DeviceFacts = {
  adapter: "a device with WebGPU's default limits",
  software: false,
  f16: false,
  subgroups: false,
  minSubgroupSize: 4,
  maxSubgroupSize: 128,
  timestamps: false,
  subgroupMatrices: [],
  maxWorkgroupSize: 256,
  maxWorkgroupBytes: 16_384,
  maxBindings: 8,
  maxBindingBytes: 2 ** 27,
  maxBufferBytes: 2 ** 28,
  bindingAlignment: 256,
};
