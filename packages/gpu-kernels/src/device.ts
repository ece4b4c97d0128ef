import { AdapterError, DeviceLostError, DeviceMemoryError } from "./errors.ts";
import { InvariantError, type SkeinError } from "@skein/tensor-core";
import { brakes } from "./event-loop-brake.ts";
import type { DeviceFacts, SubgroupMatrixShape } from "./kernel.ts";
import type { Gpu, GpuAdapter, GpuDevice } from "./platform-types.ts";

/** Which GPU is opened. */
export interface DeviceOptions {
  /** `navigator.gpu` of a page or worker, or what `openNodeGpu` returns. */
  readonly gpu: Gpu;
  readonly powerPreference?: "high-performance" | "low-power";
}

/** What our kernels use when it is there. Everything has a way without it. */
export const wishedFeatures = {
  "shader-f16": "half-precision storage and arithmetic",
  subgroups: "reductions without workgroup memory",
  "timestamp-query": "times of single kernels in a profile",
  "chromium-experimental-subgroup-matrix": "matrix products on tensor cores",
} as const;

/** The name of a feature that our kernels use when it is there. */
export type WishedFeature = keyof typeof wishedFeatures;

/** Limits that we raise to what the adapter has: large tensors, fused programs with many operands, big tiles. */
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
  const has = (feature: WishedFeature): boolean => (features as ReadonlySet<string>).has(feature);
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

/** A device, what it can do, and whether it is still well. */
export class Device {
  readonly gpu: GpuDevice;
  readonly facts: DeviceFacts;
  // Dawn in Node: an instance that is collected while one of its promises is open aborts the process, so it lives as
  // long as the device.
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
          ? "this WebGPU backend was closed; make a new one"
          : `the WebGPU device ${this.facts.adapter} was lost (${reason}: ${message || "no reason given"}) and all arrays on it with it; make a new backend and go on from the last checkpoint`,
      );
    });
    gpu.addEventListener("uncapturederror", (event) => {
      const { error } = event;
      this.failure ??= isMemoryError(error)
        ? new DeviceMemoryError(
            `the WebGPU device has no room left (${error.message}); use a smaller batch, or free arrays that are no longer needed`,
          )
        : new InvariantError(`WebGPU refused a command: ${error.message}`);
    });
  }

  /** @throws what has gone wrong with the device since the last look. */
  check(): void {
    const { failure } = this;
    if (failure === undefined) return;
    // A lost device stays lost; a refused command is told once.
    if (!(failure instanceof DeviceLostError)) this.failure = undefined;
    throw failure;
  }

  /** Whatever is awaited of the device passes through here. */
  awaiting<T>(pending: Promise<T>): Promise<T> {
    brakes.get(this.instance)?.hold(pending);
    return pending;
  }

  /** Wait for `pending`; what a lost device makes of it becomes the reason. */
  async settle<T>(pending: Promise<T>): Promise<T> {
    let value: T;
    try {
      value = await this.awaiting(pending);
    } catch (error) {
      await Promise.resolve(); // `lost` settles before or right after
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
 * Get a device with every wished feature that the adapter has, and the adapter's own limits where ours would be too
 * low.
 *
 * @throws AdapterError where there is none.
 */
export const openDevice = async ({ gpu, powerPreference = "high-performance" }: DeviceOptions): Promise<Device> => {
  const adapter = await gpu.requestAdapter({ powerPreference });
  if (adapter === null)
    throw new AdapterError(
      "WebGPU found no adapter; install a Vulkan driver (Debian: mesa-vulkan-drivers), or use the cpu backend (skein-train doctor tells more)",
    );
  const requiredFeatures = Object.keys(wishedFeatures).filter((feature) =>
    (adapter.features as ReadonlySet<string>).has(feature),
  ) as GPUFeatureName[];
  const requiredLimits: Record<string, number> = {
    minStorageBufferOffsetAlignment: adapter.limits.minStorageBufferOffsetAlignment,
  };
  for (const limit of raisedLimits) requiredLimits[limit] = adapter.limits[limit];
  try {
    return new Device(gpu, adapter, await adapter.requestDevice({ requiredFeatures, requiredLimits }));
  } catch (error) {
    throw new AdapterError(
      `the WebGPU adapter ${describeAdapter(adapter)} gives no device (${error instanceof Error ? error.message : String(error)}); update its driver or use the cpu backend`,
      { cause: error },
    );
  }
};
