import type { ErrorKind } from "@skein/tensor-core";
import {
  CollectiveError,
  type FailureContext,
  CollectiveTimeoutError,
  type LossKind,
  PeerLostError,
  PeerRevokedError,
  RanksDisagreeError,
} from "../errors.ts";
import { recordBytes } from "./layout.ts";

/**
 * The first failure of a group, as stored in the control block. Each rank converts the record to an error for that
 * rank.
 */
export interface FailureRecord extends FailureContext {
  readonly cause: "timeout" | LossKind | "disagree" | "other";
  readonly text: string;
  readonly milliseconds?: number;
  readonly kind?: ErrorKind;
  readonly code?: string;
}

/** Cause of a failure: all fields of a failure record except the rank and the collective. */
export type FailureCause = Omit<FailureRecord, "rank" | "collective">;

/** Encodes a failure record in at most `recordBytes` bytes. If necessary, the text of the record is truncated. */
export const encodeRecord = (record: FailureRecord): Uint8Array => {
  const bytes = new TextEncoder().encode(JSON.stringify(record));
  if (bytes.length <= recordBytes) return bytes;
  return new TextEncoder().encode(JSON.stringify({ ...record, text: record.text.slice(0, recordBytes / 4) }));
};

export const decodeRecord = (bytes: Uint8Array): FailureRecord =>
  JSON.parse(new TextDecoder().decode(bytes)) as FailureRecord;

/** Converts an error thrown while a request runs to the failure cause that is stored for all ranks. */
export const causeOf = (error: unknown, rank: number, timeoutMilliseconds: number): FailureCause => {
  if (error instanceof CollectiveTimeoutError)
    return { cause: "timeout", peer: error.peer, text: "", milliseconds: timeoutMilliseconds };
  if (error instanceof PeerLostError) return { cause: "lost", peer: error.peer, text: error.reason };
  if (error instanceof PeerRevokedError) return { cause: "revoked", peer: error.peer, text: error.reason };
  if (error instanceof RanksDisagreeError) return { cause: "disagree", peer: error.peer, text: error.difference };
  const { kind = "invariant", code = "internal" } = error as { kind?: ErrorKind; code?: string };
  const peer = error instanceof CollectiveError ? error.peer : rank;
  return { cause: "other", peer, kind, code, text: error instanceof Error ? error.message : String(error) };
};

/** Converts a failure record to the error that the rank of `context` throws. */
export const errorOf = (record: FailureRecord, context: FailureContext): CollectiveError => {
  switch (record.cause) {
    case "timeout":
      return new CollectiveTimeoutError(context, record.milliseconds!, record.rank);
    case "lost":
      return new PeerLostError(context, record.text);
    case "revoked":
      return new PeerRevokedError(context, record.text);
    case "disagree":
      return new RanksDisagreeError(context, record.text);
    case "other":
      return new CollectiveError(record.kind!, record.code!, context, record.text);
  }
};
