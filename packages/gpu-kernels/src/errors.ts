import { SkeinError } from "@skein/tensor-core";

/** Thrown if no adapter can run the kernels: WebGPU or the driver is missing, or a limit of the adapter is too low. */
export class AdapterError extends SkeinError {
  override name = "AdapterError";

  constructor(message: string, options?: ErrorOptions) {
    super("environment", "adapter", message, options);
  }
}

/** Thrown if the package that provides WebGPU in Node is not installed. The CPU backend does not need this package. */
export class WebGpuNotInstalledError extends AdapterError {
  override name = "WebGpuNotInstalledError";

  /** Command that installs the package. */
  readonly install: string;

  constructor(install: string, options: ErrorOptions) {
    super(`WebGPU in Node needs the package webgpu, which is not installed; install it with: ${install}`, options);
    this.install = install;
  }
}

/**
 * Thrown if the device and all its arrays are lost, because of a driver reset, an unplugged device, or a kernel that
 * ran too long. Create a new backend and continue from the last checkpoint.
 */
export class DeviceLostError extends SkeinError {
  override name = "DeviceLostError";

  constructor(message: string) {
    super("environment", "device-lost", message);
  }
}

/**
 * Thrown if the device has no memory for the buffers of a call, or a buffer would exceed the maximum size. The failed
 * call has no effect.
 */
export class DeviceMemoryError extends SkeinError {
  override name = "DeviceMemoryError";

  constructor(message: string) {
    super("environment", "device-memory", message);
  }
}
