import { SkeinError } from "@skein/tensor-core";

/** Error for a launcher (mpirun, sbatch, kubectl) that is missing, unknown, or failed. */
export class LaunchError extends SkeinError {
  override name = "LaunchError";

  constructor(message: string, options?: ErrorOptions) {
    super("environment", "launcher", message, options);
  }
}
