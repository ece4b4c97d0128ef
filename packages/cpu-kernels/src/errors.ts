import { SkeinError } from "@skein/tensor-core";

/** This host cannot run the WebAssembly builds, because it lacks WebAssembly threads or shared memory. */
export class HostError extends SkeinError {
  override name = "HostError";

  constructor(message: string) {
    super("environment", "host", message);
  }
}

/** The memory that all ranks share is full. */
export class OutOfMemoryError extends SkeinError {
  override name = "OutOfMemoryError";

  constructor(message: string) {
    super("environment", "out-of-memory", message);
  }
}

/** A helper thread of the kernels failed, exited or does not respond. The results of the current run are lost. */
export class HelperError extends SkeinError {
  override name = "HelperError";

  constructor(message: string) {
    super("environment", "helper-thread", message);
  }
}
