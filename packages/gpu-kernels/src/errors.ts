import { SkeinError } from "@skein/tensor-core";

/** No adapter that can run the kernels: no WebGPU, no driver, or a limit that is too low. */
export class AdapterError extends SkeinError {
  override name = "AdapterError";

  constructor(message: string, options?: ErrorOptions) {
    super("environment", "adapter", message, options);
  }
}

/** The package that opens WebGPU in Node is not installed: nobody who computes on the CPU needs it. */
export class WebGpuNotInstalledError extends AdapterError {
  override name = "WebGpuNotInstalledError";

  /** The command that installs it. */
  readonly install: string;

  constructor(install: string, options: ErrorOptions) {
    super(`WebGPU in Node needs the package webgpu, which is not installed; install it with: ${install}`, options);
    this.install = install;
  }
}

/**
 * The device is gone, and all arrays on it with it: driver reset, unplugged, or a kernel that ran too long. Make a new
 * backend and go on from the last checkpoint.
 */
export class DeviceLostError extends SkeinError {
  override name = "DeviceLostError";

  constructor(message: string) {
    super("environment", "device-lost", message);
  }
}

/**
 * The device has no memory left for the buffers of a call, which has changed nothing, or a buffer would be larger than
 * it allows.
 */
export class DeviceMemoryError extends SkeinError {
  override name = "DeviceMemoryError";

  constructor(message: string) {
    super("environment", "device-memory", message);
  }
}
