import { SkeinError } from "@skein/tensor-core";

/** The coordinator did not let this process join: it asks for something that this job or this world is not. */
export class JoinRefusedError extends SkeinError {
  override name = "JoinRefusedError";

  constructor(code: "join-job" | "join-build" | "join-world-size" | "join-rank", message: string) {
    super("user", code, message);
  }
}

/**
 * The coordinator has no place for this process, and may have one later: once what an earlier start has left behind is
 * gone.
 */
export class PlaceTakenError extends SkeinError {
  override name = "PlaceTakenError";

  constructor(code: "join-rank-taken" | "join-late", message: string) {
    super("environment", code, message);
  }
}

/** The ranks of a job did not find each other, or what they found each other by is gone. */
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
