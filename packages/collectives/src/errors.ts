import { type ErrorKind, SkeinError } from "@skein/tensor-core";
import { formatRanks } from "./ranks.ts";

/** Rank, peer and collective of a failure. */
export interface FailureContext {
  /** Rank that throws the error. */
  readonly rank: number;
  /** Peer that the failure concerns. */
  readonly peer: number;
  /** Kind and number of the collective, for example `all-reduce #12`. */
  readonly collective: string;
}

/**
 * Base class of this package's errors. After a `CollectiveError` the group is unusable, and every later call throws.
 */
export class CollectiveError extends SkeinError implements FailureContext {
  override name = "CollectiveError";

  readonly rank: number;
  readonly peer: number;
  readonly collective: string;

  constructor(kind: ErrorKind, code: string, context: FailureContext, message: string, options?: ErrorOptions) {
    super(kind, code, message, options);
    this.rank = context.rank;
    this.peer = context.peer;
    this.collective = context.collective;
  }
}

/** Thrown if a peer does not join a collective in time. Recoverable: rebuild the group. */
export class CollectiveTimeoutError extends CollectiveError {
  override name = "CollectiveTimeoutError";

  constructor(context: FailureContext, timeoutMilliseconds: number, reporter: number = context.rank) {
    super(
      "environment",
      "collective-timeout",
      context,
      `rank ${context.rank}: rank ${context.peer} did not join ${context.collective} within ${timeoutMilliseconds} ms${reporter === context.rank ? "" : ` (rank ${reporter} gave up first)`}; ` +
        "the group is unusable now: restart from the last checkpoint, or raise timeoutMilliseconds (network.timeoutSeconds of a job) if that rank is only slow",
    );
  }
}

/** Thrown if a peer's thread or process has ended. Recoverable: rebuild the group. */
export class PeerLostError extends CollectiveError {
  override name = "PeerLostError";

  readonly reason: string;

  constructor(context: FailureContext, reason: string) {
    super(
      "environment",
      "peer-lost",
      context,
      `rank ${context.rank}: rank ${context.peer} was lost during ${context.collective}: ${reason}; the group is unusable now: restart from the last checkpoint`,
    );
    this.reason = reason;
  }
}

/**
 * Reason for the loss of a rank. `lost`: the rank's process or thread ended or became unreachable. `revoked`: the
 * rank's certificate was revoked.
 */
export type LossKind = "lost" | "revoked";

/**
 * Thrown if a rank was cut off because its certificate was revoked. The certificate may be stolen, so the user must
 * act.
 */
export class PeerRevokedError extends CollectiveError {
  override name = "PeerRevokedError";

  readonly reason: string;

  constructor(context: FailureContext, reason: string) {
    const subject = context.peer === context.rank ? "this rank was" : `rank ${context.peer} was`;
    super(
      "user",
      "peer-revoked",
      context,
      `rank ${context.rank}: ${subject} cut off during ${context.collective}: ${reason}; the group is unusable now: create new files for that rank with skein-train certs renew, copy them to a host that you trust, ` +
        "and start the run again; it continues from its last checkpoint",
    );
    this.reason = reason;
  }
}

/** Thrown if two ranks start different collectives. */
export class RanksDisagreeError extends CollectiveError {
  override name = "RanksDisagreeError";

  readonly difference: string;

  constructor(context: FailureContext, difference: string) {
    super(
      "user",
      "ranks-disagree",
      context,
      `rank ${context.rank} in ${context.collective}: ${difference}; all ranks must start the same requests, with the same sizes, in the same order`,
    );
    this.difference = difference;
  }
}

/**
 * Thrown if ranks have different settings. Their sums could then differ bitwise, or the ranks could choose different
 * algorithms and wait forever.
 */
export class RanksDifferError extends CollectiveError {
  override name = "RanksDifferError";

  constructor(
    context: Pick<FailureContext, "rank" | "peer">,
    name: string,
    { value, ranks }: { readonly value: string; readonly ranks: readonly number[] },
    ofRank0: string,
  ) {
    super(
      "user",
      "ranks-differ",
      { ...context, collective: "the start" },
      `${name}: ${formatRanks(ranks)} ${ranks.length === 1 ? "has" : "have"} ${value}, rank 0 has ${ofRank0}; all ranks must have the same value, or they would not compute the same bits: ` +
        "give every process the same job file, the same files that the job file names, and the same kind of host",
    );
  }
}

/** Thrown by calls on a closed group. */
export class GroupClosedError extends CollectiveError {
  override name = "GroupClosedError";

  constructor(context: FailureContext) {
    super(
      "user",
      "group-closed",
      context,
      `rank ${context.rank}: ${context.collective} was started on a closed group; close the world only after every rank has finished`,
    );
  }
}
