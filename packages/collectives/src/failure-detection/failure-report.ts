/** What a rank says to the others when it gives a world up, and of whom. */
export interface FailureReport {
  /**
   * `lost`: gone or cut off. `timeout`: it did not take part in time. `disagree`: it sent another collective than was
   * expected. `revoked`: its certificate was.
   */
  readonly kind: "lost" | "timeout" | "disagree" | "revoked";
  readonly rank: number;
  readonly tag: number;
  readonly reason: string;
}

const longestReason = 2000;
/** Of a report as bytes: every character of the reason may take six. */
export const longestFailureReport = 16_384;

/**
 * Whether a value is a report. Written out: the schema library would be the largest part of whatever bundles a
 * transport.
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

/** A report as the payload of an error frame. */
export const encodeFailureReport = (report: FailureReport): Uint8Array =>
  new TextEncoder().encode(JSON.stringify({ ...report, reason: report.reason.slice(0, longestReason) }));

/** @throws SyntaxError when the bytes are no report. */
export const decodeFailureReport = (bytes: Uint8Array): FailureReport => {
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
  if (!isFailureReport(value))
    throw new SyntaxError("invalid report of a failure: kind, rank, tag and reason are expected, and nothing else");
  return value;
};
