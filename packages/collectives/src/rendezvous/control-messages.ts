import { ArgumentError } from "@skein/tensor-core";
import { Packr } from "msgpackr";
import { z } from "zod";
import { checkedCodec, type MessageCodec } from "./message-codec.ts";
import { type Roster, rosterSchema } from "./roster.ts";

/** Maximum size of a control message in bytes: enough for the trace spans of several hundred steps of a large graph. */
export const controlMessageBytes: number = 64 * 1024 * 1024;

/** Lost ranks and the reason for the loss. */
export interface Loss {
  readonly ranks: readonly number[];
  readonly reason: string;
  /**
   * Whether the ranks were cut off because their certificate was revoked, so that a retry is pointless. Default: false.
   */
  readonly revoked?: boolean | undefined;
}

const incompleteCodes = ["rendezvous-timeout", "rendezvous-failed", "rendezvous-stopped"] as const;

/** Reason why a world cannot be completed: ranks did not join in time, a rank was lost, or the run was stopped. */
export type IncompleteCode = (typeof incompleteCodes)[number];

/** Message from a coordinator to a member. */
export type Announcement =
  | {
      readonly kind: "complete";
      readonly roster: Roster;
      readonly process: number;
      readonly coordinatorRanks: readonly number[];
    }
  | { readonly kind: "incomplete"; readonly code: IncompleteCode; readonly message: string }
  | ({ readonly kind: "lost" } & Loss)
  | { readonly kind: "message"; readonly body: unknown };

/** Message from a member to its coordinator. */
export type Report =
  | { readonly kind: "lost"; readonly rank: number; readonly reason: string }
  | { readonly kind: "message"; readonly body: unknown };

// Plain msgpack without the record extension, so that every message can be decoded without earlier messages.
const packr = new Packr({ useRecords: false });
const msgpack = {
  encode: (message: unknown): Uint8Array => packr.pack(message),
  decode: (bytes: Uint8Array): unknown => packr.unpack(bytes),
};

/**
 * Encodes a message.
 *
 * @throws ArgumentError if the message is larger than a connection allows.
 */
export const encodeBounded = <Message>(codec: MessageCodec<Message>, message: Message): Uint8Array => {
  const payload = codec.encode(message);
  if (payload.byteLength > controlMessageBytes)
    throw new ArgumentError(
      `a control message of ${payload.byteLength} bytes is larger than ${controlMessageBytes}; send it in parts`,
    );
  return payload;
};

const rank = z.int().min(0);
const message = z.strictObject({ kind: z.literal("message"), body: z.unknown() });

export const announcementCodec: MessageCodec<Announcement> = checkedCodec(
  "an announcement",
  z.discriminatedUnion("kind", [
    z.strictObject({
      kind: z.literal("complete"),
      roster: rosterSchema,
      process: z.int().min(0),
      coordinatorRanks: z.array(rank),
    }),
    z.strictObject({ kind: z.literal("incomplete"), code: z.enum(incompleteCodes), message: z.string() }),
    z.strictObject({
      kind: z.literal("lost"),
      ranks: z.array(rank),
      reason: z.string(),
      revoked: z.boolean().optional(),
    }),
    message,
  ]),
  msgpack,
);

export const reportCodec: MessageCodec<Report> = checkedCodec(
  "a report",
  z.discriminatedUnion("kind", [z.strictObject({ kind: z.literal("lost"), rank, reason: z.string() }), message]),
  msgpack,
);
