import { SkeinError } from "@skein/tensor-core";

/** This host cannot run the WebAssembly builds at all: no threads, or no shared memory. */
export class HostError extends SkeinError {
  override name = "HostError";

  constructor(message: string) {
    super("environment", "host", message);
  }
}

/** The shared memory of all ranks is full. */
export class OutOfMemoryError extends SkeinError {
  override name = "OutOfMemoryError";

  constructor(message: string) {
    super("environment", "out-of-memory", message);
  }
}

/** A thread that helps with kernels failed, ended or does not answer; what was computed meanwhile is lost. */
export class HelperError extends SkeinError {
  override name = "HelperError";

  constructor(message: string) {
    super("environment", "helper-thread", message);
  }
}
