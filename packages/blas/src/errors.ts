import { SkeinError } from "@skein/tensor-core";

/** A BLAS cannot be built, loaded or used here. WebAssembly computes without a BLAS. */
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
