import { SkeinError } from "@skein/tensor-core";

/** Thrown if a BLAS cannot be built, loaded or used on this machine. Computations in WebAssembly do not need a BLAS. */
export class BlasError extends SkeinError {
  override name = "BlasError";

  constructor(
    code: "blas-build" | "blas-changed" | "blas-missing" | "blas-table",
    message: string,
    options?: ErrorOptions,
  ) {
    super("environment", code, message, options);
  }
}
