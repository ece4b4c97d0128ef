import { SkeinError } from "@skein/tensor-core";

/** A launcher (mpirun, sbatch, kubectl) is missing, unknown, or failed. */
export class LaunchError extends SkeinError {
  override name = "LaunchError";

  constructor(message: string, options?: ErrorOptions) {
    super("environment", "launcher", message, options);
  }
}
