import { SkeinError } from "@skein/tensor-core";

/** Thrown if the coordinator refuses this process, because its job, build, world size or ranks do not match. */
export class JoinRefusedError extends SkeinError {
  override name = "JoinRefusedError";

  constructor(code: "join-job" | "join-build" | "join-world-size" | "join-rank", message: string) {
    super("user", code, message);
  }
}

/**
 * Thrown if the requested ranks are taken by an earlier process, or if all ranks have already joined. The ranks may
 * become free when the earlier process is gone.
 */
export class JoinUnavailableError extends SkeinError {
  override name = "JoinUnavailableError";

  constructor(code: "join-rank-taken" | "join-late", message: string) {
    super("environment", code, message);
  }
}

/** Thrown if the ranks of a job could not connect to each other, or if the coordinator is gone. */
export class RendezvousError extends SkeinError {
  override name = "RendezvousError";

  constructor(
    code:
      | "rendezvous-timeout"
      | "rendezvous-failed"
      | "rendezvous-stopped"
      | "coordinator-lost"
      | "not-a-coordinator"
      | "control-message",
    message: string,
    options?: ErrorOptions,
  ) {
    super("environment", code, message, options);
  }
}
