import { SkeinError } from "@skein/tensor-core";

/** Thrown if this host cannot run the WebAssembly builds, because it lacks WebAssembly threads or shared memory. */
export class HostError extends SkeinError {
  override name = "HostError";

  constructor(message: string) {
    super("environment", "host", message);
  }
}

/** Thrown if the memory that all ranks share is full. */
export class OutOfMemoryError extends SkeinError {
  override name = "OutOfMemoryError";

  constructor(message: string) {
    super("environment", "out-of-memory", message);
  }
}

/**
 * Thrown if a helper thread of the kernels failed, exited or does not respond. The results of the current run are lost.
 */
export class HelperError extends SkeinError {
  override name = "HelperError";

  constructor(message: string) {
    super("environment", "helper-thread", message);
  }
}
