/** Report of a rank to the others when it gives up a world, and the rank that it blames. */
export interface FailureReport {
  /**
   * `lost`: gone or cut off. `timeout`: did not join in time. `disagree`: sent another collective than expected.
   * `revoked`: its certificate was revoked.
   */
  readonly kind: "lost" | "timeout" | "disagree" | "revoked";
  readonly rank: number;
  readonly tag: number;
  readonly reason: string;
}

const longestReason = 2000;
/** Maximum size of an encoded report, bytes: each character of the reason may take six. */
export const longestFailureReport = 16_384;

/**
 * Whether a value is a report. Written by hand, because the schema library would be the largest part of a bundle of a
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
