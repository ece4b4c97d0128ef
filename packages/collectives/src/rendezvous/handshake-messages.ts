import { z } from "zod";
import type { Heartbeat } from "../failure-detection/heartbeat.ts";
import { PeerIdentityError } from "../security/errors.ts";
import { printable } from "../security/printable.ts";
import { WireError } from "../wire/errors.ts";
import { JoinRefusedError, PlaceTakenError } from "./errors.ts";
import { checkedCodec, type MessageCodec } from "./message-codec.ts";
import { addressSchema, type RankAddress } from "./roster.ts";

/** The most bytes of a join request, a welcome or a refusal: a thousand ranks with their addresses. */
export const joinBytes: number = 256 * 1024;

/** The most ranks of one process. */
export const ranksPerProcess = 1024;

/** What a process asks for, once it has proven that it knows the job's secret. */
export interface JoinRequest {
  readonly build: string;
  readonly worldSize: number;
  readonly ranks: readonly number[];
  /** Data listener of each of `ranks`. */
  readonly addresses: readonly RankAddress[];
  readonly hostName: string;
}

/** The coordinator has taken the process in. */
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

/** The coordinator does not take the process in. */
export interface Refusal {
  readonly code: (typeof refusalCodes)[number];
  readonly message: string;
}

/** A refusal as the error that the joining side throws. */
export const refusalError = ({
  code,
  message,
}: Refusal): JoinRefusedError | PlaceTakenError | PeerIdentityError | WireError => {
  if (code === "peer-identity") return new PeerIdentityError(message);
  if (code === "protocol-version") return new WireError(code, message);
  if (code === "join-rank-taken" || code === "join-late") return new PlaceTakenError(code, message);
  return new JoinRefusedError(code, message);
};

// JSON and not msgpack: these come from anyone who finds the port, and V8's JSON parser has met everything.
const json = {
  encode: (message: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(message)),
  decode: (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)),
};

// Fields that we do not know are left out, not refused: a neighbour of the next minor version may say more.
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
