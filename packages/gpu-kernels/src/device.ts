import { AdapterError, DeviceLostError, DeviceMemoryError } from "./errors.ts";
import { InvariantError, type SkeinError } from "@skein/tensor-core";
import { brakes } from "./event-loop-brake.ts";
import type { DeviceFacts, SubgroupMatrixShape } from "./kernel.ts";
import type { Gpu, GpuAdapter, GpuDevice } from "./platform-types.ts";

/** Options that select the GPU to open. */
export interface DeviceOptions {
  /** `navigator.gpu` of a page or worker, or the result of `openNodeGpu`. */
  readonly gpu: Gpu;
  readonly powerPreference?: "high-performance" | "low-power";
}

/** Optional WebGPU features that our kernels use. Every kernel has a fallback for devices without them. */
export const optionalFeatures = {
  "shader-f16": "half-precision storage and arithmetic",
  subgroups: "reductions without workgroup memory",
  "timestamp-query": "times of single kernels in a profile",
  "chromium-experimental-subgroup-matrix": "matrix products on tensor cores",
} as const;

/** Name of an optional feature that our kernels use. */
export type OptionalFeature = keyof typeof optionalFeatures;

/**
 * Limits that are raised to the adapter's maximum: for large tensors, fused programs with many operands, and large
 * tiles.
 */
const raisedLimits = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupStorageSize",
] as const;

const describeAdapter = ({ info }: GPUAdapter): string =>
  [info.vendor, info.architecture, info.device, info.description].filter((part) => part !== "").join(" ");

const isSoftware = ({ info }: GPUAdapter): boolean =>
  info.isFallbackAdapter ||
  /llvmpipe|lavapipe|swiftshader|software/i.test(
    `${info.vendor} ${info.architecture} ${info.device} ${info.description}`,
  );

const matrixShapes = ({ info }: GPUAdapter): SubgroupMatrixShape[] => {
  const configs =
    (
      info as {
        subgroupMatrixConfigs?: Iterable<{
          componentType: string;
          resultComponentType: string;
          M: number;
          N: number;
          K: number;
        }>;
      }
    ).subgroupMatrixConfigs ?? [];
  return [...configs].flatMap(({ componentType, resultComponentType, M, N, K }) =>
    (componentType === "f16" || componentType === "f32") &&
    (resultComponentType === "f16" || resultComponentType === "f32")
      ? [{ operands: componentType, result: resultComponentType, rows: M, columns: N, inner: K }]
      : [],
  );
};

const factsOf = (adapter: GPUAdapter, device: GPUDevice): DeviceFacts => {
  const { limits, features } = device;
  const has = (feature: OptionalFeature): boolean => (features as ReadonlySet<string>).has(feature);
  return {
    adapter: describeAdapter(adapter),
    software: isSoftware(adapter),
    f16: has("shader-f16"),
    subgroups: has("subgroups"),
    minSubgroupSize: adapter.info.subgroupMinSize,
    maxSubgroupSize: adapter.info.subgroupMaxSize,
    timestamps: has("timestamp-query"),
    subgroupMatrices: has("chromium-experimental-subgroup-matrix") ? matrixShapes(adapter) : [],
    maxWorkgroupSize: Math.min(limits.maxComputeInvocationsPerWorkgroup, limits.maxComputeWorkgroupSizeX),
    maxWorkgroupBytes: limits.maxComputeWorkgroupStorageSize,
    maxBindings: limits.maxStorageBuffersPerShaderStage,
    maxBindingBytes: limits.maxStorageBufferBindingSize,
    maxBufferBytes: limits.maxBufferSize,
    bindingAlignment: Math.max(16, limits.minStorageBufferOffsetAlignment),
  };
};

/** A device, its capabilities and its error state. */
export class WebGpuDevice {
  readonly gpu: GpuDevice;
  readonly facts: DeviceFacts;
  // WebGPU instance of the device. Stored here, because Dawn in Node aborts the process if an instance is
  // garbage-collected while one of its promises is pending.
  readonly instance: Gpu;
  private failure: SkeinError | undefined;
  private closed = false;

  constructor(instance: Gpu, adapter: GpuAdapter, gpu: GpuDevice) {
    this.instance = instance;
    this.gpu = gpu;
    this.facts = factsOf(adapter, gpu);
    void gpu.lost.then(({ reason, message }) => {
      this.failure = new DeviceLostError(
        this.closed
          ? "this WebGPU backend was closed; create a new backend"
          : `the WebGPU device ${this.facts.adapter} was lost (${reason}: ${message || "no reason given"}) and all its arrays with it; create a new backend and continue from the last checkpoint`,
      );
    });
    gpu.addEventListener("uncapturederror", (event) => {
      const { error } = event;
      this.failure ??= isMemoryError(error)
        ? new DeviceMemoryError(
            `the WebGPU device is out of memory (${error.message}); use a smaller batch, or free arrays that are no longer needed`,
          )
        : new InvariantError(`WebGPU rejected a command: ${error.message}`);
    });
  }

  /** Throws the first device error since the previous call, if there was an error. */
  check(): void {
    const { failure } = this;
    if (failure === undefined) return;
    // The loss of a device is reported by every call. All other errors are reported once.
    if (!(failure instanceof DeviceLostError)) this.failure = undefined;
    throw failure;
  }

  /**
   * Returns `pending`. Until `pending` settles, the thread sleeps between turns of the event loop instead of polling
   * continuously. Use this method for every await on the device.
   */
  awaiting<T>(pending: Promise<T>): Promise<T> {
    brakes.get(this.instance)?.hold(pending);
    return pending;
  }

  /** Waits for `pending`. If the device is lost, throws the device-lost error instead of the rejection of `pending`. */
  async settle<T>(pending: Promise<T>): Promise<T> {
    let value: T;
    try {
      value = await this.awaiting(pending);
    } catch (error) {
      await Promise.resolve(); // the promise `lost` settles shortly before or after `pending`
      this.check();
      throw error;
    }
    this.check();
    return value;
  }

  close(): void {
    this.closed = true;
    this.gpu.destroy();
  }
}

const isMemoryError = (error: GPUError): boolean => error.constructor.name === "GPUOutOfMemoryError";

/**
 * Opens a device with all optional features of the adapter, and with the adapter's limits instead of the lower default
 * limits.
 *
 * @throws AdapterError if there is no suitable adapter.
 */
export const openDevice = async ({
  gpu,
  powerPreference = "high-performance",
}: DeviceOptions): Promise<WebGpuDevice> => {
  const adapter = await gpu.requestAdapter({ powerPreference });
  if (adapter === null)
    throw new AdapterError(
      "WebGPU found no adapter; install a Vulkan driver (Debian: mesa-vulkan-drivers), or use the cpu backend (for details: skein-train doctor)",
    );
  const requiredFeatures = Object.keys(optionalFeatures).filter((feature) =>
    (adapter.features as ReadonlySet<string>).has(feature),
  ) as GPUFeatureName[];
  const requiredLimits: Record<string, number> = {
    minStorageBufferOffsetAlignment: adapter.limits.minStorageBufferOffsetAlignment,
  };
  for (const limit of raisedLimits) requiredLimits[limit] = adapter.limits[limit];
  try {
    return new WebGpuDevice(gpu, adapter, await adapter.requestDevice({ requiredFeatures, requiredLimits }));
  } catch (error) {
    throw new AdapterError(
      `the WebGPU adapter ${describeAdapter(adapter)} cannot open a device (${error instanceof Error ? error.message : String(error)}); update its driver or use the cpu backend`,
      { cause: error },
    );
  }
};
