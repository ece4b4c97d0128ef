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
/** What no time cures. */
export type MisfitCode = Exclude<RefusalCode, "link-rank-taken" | "link-session">;

/** Two ranks that do not belong together: one refused the other's link, and both say why. */
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

/** What an earlier start has left holds the place of a link, or had it: once that is gone, the same ranks link. */
export class LinkPlaceError extends SkeinError {
  override name = "LinkPlaceError";

  constructor(code: "link-rank-taken" | "link-session", message: string) {
    super("environment", code, message);
  }
}

/** A refusal as the error that the side which hears it throws. */
export const refusalError = (code: RefusalCode, message: string): LinkRefusedError | LinkPlaceError =>
  code === "link-rank-taken" || code === "link-session"
    ? new LinkPlaceError(code, message)
    : new LinkRefusedError(code, message);

/** A link that did not come about: nobody answered in time, or what answered is no rank. */
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
