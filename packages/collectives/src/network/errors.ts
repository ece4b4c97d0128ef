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

/** Two ranks that do not belong together: one refused the other's link, and both say why. */
export class LinkRefusedError extends SkeinError {
  constructor(
    code:
      | "link-protocol"
      | "link-job"
      | "link-build"
      | "link-world-size"
      | "link-settings"
      | "link-rank"
      | "link-rank-taken"
      | "link-session"
      | "link-secret"
      | "link-identity",
    message: string,
  ) {
    super("user", code, message);
  }
}

/** A link that did not come about: nobody answered in time, or what answered is no rank. */
export class LinkFailedError extends SkeinError {
  constructor(code: "link-timeout" | "link-unreachable" | "link-garbage" | "link-closed", message: string, options?: ErrorOptions) {
    super("environment", code, message, options);
  }
}
