import { SkeinError } from "@skein/tensor-core";

export const refusalCodes = [
  "link-protocol",
  "link-job",
  "link-build",
  "link-world-size",
  "link-settings",
  "link-rank",
  "link-rank-taken",
  "link-session",
  "link-secret",
  "link-identity",
] as const;
export type RefusalCode = (typeof refusalCodes)[number];
/** Refusal codes for which a retry is pointless. */
export type MismatchCode = Exclude<RefusalCode, "link-rank-taken" | "link-session">;

/** Thrown if a rank refuses a link because the other rank does not belong to its job. Both ranks report the reason. */
export class LinkRefusedError extends SkeinError {
  override name = "LinkRefusedError";

  constructor(
    code:
      | "link-protocol"
      | "link-job"
      | "link-build"
      | "link-world-size"
      | "link-settings"
      | "link-rank"
      | "link-secret"
      | "link-identity",
    message: string,
  ) {
    super("user", code, message);
  }
}

/**
 * Thrown if an earlier process of a rank still uses the link, or if the link to continue no longer exists. The same
 * ranks can link after the earlier process has ended.
 */
export class LinkBusyError extends SkeinError {
  override name = "LinkBusyError";

  constructor(code: "link-rank-taken" | "link-session", message: string) {
    super("environment", code, message);
  }
}

/** Converts a refusal to the error that the refused rank throws. */
export const refusalError = (code: RefusalCode, message: string): LinkRefusedError | LinkBusyError =>
  code === "link-rank-taken" || code === "link-session"
    ? new LinkBusyError(code, message)
    : new LinkRefusedError(code, message);

/** Thrown if a link could not be established: no process responded in time, or the responding process is not a rank. */
export class LinkFailedError extends SkeinError {
  override name = "LinkFailedError";

  constructor(
    code: "link-timeout" | "link-unreachable" | "link-garbage" | "link-closed",
    message: string,
    options?: ErrorOptions,
  ) {
    super("environment", code, message, options);
  }
}
