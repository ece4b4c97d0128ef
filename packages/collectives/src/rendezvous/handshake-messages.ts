import { z } from "zod";
import type { Heartbeat } from "../failure-detection/heartbeat.ts";
import { PeerIdentityError } from "../security/errors.ts";
import { printable } from "../security/printable.ts";
import { WireError } from "../wire/errors.ts";
import { JoinRefusedError, JoinUnavailableError } from "./errors.ts";
import { checkedCodec, type MessageCodec } from "./message-codec.ts";
import { addressSchema, type RankAddress } from "./roster.ts";

/**
 * Maximum size of a join request, a welcome or a refusal, in bytes: enough for a thousand ranks with their addresses.
 */
export const joinBytes: number = 256 * 1024;

/** Maximum number of ranks of one process. */
export const ranksPerProcess = 1024;

/** Join request of a process that has proven that it knows the job's secret. */
export interface JoinRequest {
  readonly build: string;
  readonly worldSize: number;
  readonly ranks: readonly number[];
  /** Address of the data listener of each rank in `ranks`. */
  readonly addresses: readonly RankAddress[];
  readonly hostName: string;
}

/** Response of a coordinator that admits a process. */
export interface Welcome {
  readonly heartbeat: Heartbeat;
}

export const refusalCodes = [
  "join-job",
  "join-build",
  "join-world-size",
  "join-rank",
  "join-rank-taken",
  "join-late",
  "peer-identity",
  "protocol-version",
] as const;

/** Response of a coordinator that refuses a process. */
export interface Refusal {
  readonly code: (typeof refusalCodes)[number];
  readonly message: string;
}

/** Converts a refusal to the error that the joining process throws. */
export const refusalError = ({
  code,
  message,
}: Refusal): JoinRefusedError | JoinUnavailableError | PeerIdentityError | WireError => {
  if (code === "peer-identity") return new PeerIdentityError(message);
  if (code === "protocol-version") return new WireError(code, message);
  if (code === "join-rank-taken" || code === "join-late") return new JoinUnavailableError(code, message);
  return new JoinRefusedError(code, message);
};

// JSON instead of msgpack, because these messages may come from any process that finds the port, and V8's JSON parser
// is well tested against hostile input.
const json = {
  encode: (message: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(message)),
  decode: (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)),
};

// Unknown fields are ignored, not refused, because a peer with the next minor version may send more fields.
const joinSchema: z.ZodType<JoinRequest> = z
  .object({
    build: z.string().max(256).regex(printable),
    worldSize: z.int(),
    ranks: z.array(z.int().min(0).max(999_999_999)).min(1).max(ranksPerProcess),
    addresses: z.array(addressSchema).max(ranksPerProcess),
    hostName: z.string().min(1).max(255).regex(printable),
  })
  .refine(({ ranks, addresses }) => ranks.length === addresses.length, "a join request needs one address per rank");

export const joinCodec: MessageCodec<JoinRequest> = checkedCodec("a join request", joinSchema, json);

export const welcomeCodec: MessageCodec<Welcome> = checkedCodec(
  "a welcome",
  z.object({
    heartbeat: z.object({
      intervalMilliseconds: z.number().positive(),
      lossMilliseconds: z.number().positive(),
      stuckMilliseconds: z.number().positive(),
    }),
  }),
  json,
);

export const refusalCodec: MessageCodec<Refusal> = checkedCodec(
  "a refusal",
  z.object({ code: z.enum(refusalCodes), message: z.string().max(8192) }),
  json,
);
