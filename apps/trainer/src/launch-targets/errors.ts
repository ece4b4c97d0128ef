import { SkeinError } from "@skein/tensor-core";

/** A launcher (mpirun, sbatch, kubectl) that is not there, that we do not know, or that refused. */
export class LaunchError extends SkeinError {
  override name = "LaunchError";

  constructor(message: string, options?: ErrorOptions) {
    super("environment", "launcher", message, options);
  }
}
