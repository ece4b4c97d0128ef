import { CollectiveError, type FailureContext } from "@skein/collectives";
import { SkeinError } from "@skein/tensor-core";

/** Thrown if MPI cannot be built, loaded or used on this machine. The TCP transport needs no MPI. */
export class MpiError extends SkeinError {
  override name = "MpiError";

  constructor(
    code: "mpi-build" | "mpi-call" | "mpi-closed" | "mpi-launcher" | "mpi-missing",
    message: string,
    options?: ErrorOptions,
  ) {
    super("environment", code, message, options);
  }
}

/**
 * Thrown if a collective of MPI did not complete in time. MPI does not report which rank is missing, so `peer` is −1.
 */
export class NativeTimeoutError extends CollectiveError {
  override name = "NativeTimeoutError";

  constructor(rank: number, collective: string, timeoutMilliseconds: number) {
    super(
      "environment",
      "collective-timeout",
      { rank, peer: -1, collective },
      `rank ${rank}: ${collective} of MPI itself did not end within ${timeoutMilliseconds} ms, so some rank did not join it; ` +
        "the group is unusable now: restart from the last checkpoint, or raise timeoutMilliseconds if that rank is only slow",
    );
  }
}

/** Thrown if an MPI call failed during a collective. Recoverable by a restart of the job. */
export class MpiTransferError extends CollectiveError {
  override name = "MpiTransferError";

  constructor(context: FailureContext, reason: string) {
    super(
      "environment",
      "mpi-transfer",
      context,
      `rank ${context.rank}: ${context.collective}${context.peer >= 0 ? ` with rank ${context.peer}` : ""} failed in MPI: ${reason}; ` +
        "the group is unusable now: restart the job from the last checkpoint",
    );
  }
}
