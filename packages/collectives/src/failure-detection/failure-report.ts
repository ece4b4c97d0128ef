/** Report that a rank sends to all other ranks when its world has failed. `rank` is the blamed rank. */
export interface FailureReport {
  /**
   * `lost`: the rank is gone or was cut off. `timeout`: the rank did not join in time. `disagree`: the rank started a
   * different collective than expected. `revoked`: the rank's certificate was revoked.
   */
  readonly kind: "lost" | "timeout" | "disagree" | "revoked";
  readonly rank: number;
  readonly tag: number;
  readonly reason: string;
}

const longestReason = 2000;
/** Maximum size of an encoded report, in bytes. Each character of the reason may take six bytes. */
export const longestFailureReport = 16_384;

/**
 * Whether a value is a report. Written without the schema library, which would be the largest part of a transport's
 * bundle.
 */
const isFailureReport = (value: unknown): value is FailureReport => {
  if (typeof value !== "object" || value === null) return false;
  const { kind, rank, tag, reason, ...more } = value as Record<string, unknown>;
  const isCount = (part: unknown): boolean => Number.isSafeInteger(part) && (part as number) >= 0;
  return (
    ["lost", "timeout", "disagree", "revoked"].includes(kind as string) &&
    isCount(rank) &&
    isCount(tag) &&
    typeof reason === "string" &&
    reason.length <= longestReason &&
    Object.keys(more).length === 0
  );
};

/** Encodes a report as the payload of an error frame. */
export const encodeFailureReport = (report: FailureReport): Uint8Array =>
  new TextEncoder().encode(JSON.stringify({ ...report, reason: report.reason.slice(0, longestReason) }));

/**
 * Decodes a report.
 *
 * @throws SyntaxError if the bytes are not a report.
 */
export const decodeFailureReport = (bytes: Uint8Array): FailureReport => {
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
  if (!isFailureReport(value))
    throw new SyntaxError("invalid failure report: expected the fields kind, rank, tag and reason, and no others");
  return value;
};
