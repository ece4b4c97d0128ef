import { z } from "zod";
import { PeerIdentityError, TokenError } from "../security/errors.ts";
import { JoinRefusedError, PlaceTakenError } from "./errors.ts";
import { checkedCodec, type MessageCodec } from "./message-codec.ts";
import { addressSchema, type RankAddress } from "./roster.ts";

/** The most bytes of a hello, a welcome or a refusal: a thousand ranks with their addresses. Strangers may send no more. */
export const handshakeBytes: number = 256 * 1024;

/** The most ranks of one process. */
export const ranksPerProcess = 1024;

/** What a process says first. */
export interface Hello {
  readonly job: string;
  readonly build: string;
  readonly worldSize: number;
  readonly ranks: readonly number[];
  /** Data listener of each of `ranks`. */
  readonly addresses: readonly RankAddress[];
  readonly hostName: string;
  readonly token: string;
  /** To be signed by the coordinator, which so proves that it knows the secret. */
  readonly nonce: string;
}

/** How often each side of a control connection is heard from. */
export interface Heartbeat {
  /** A side that has sent nothing for so long sends a ping. */
  readonly intervalMilliseconds: number;
  /** A side that was not heard for so long is lost. */
  readonly lossMilliseconds: number;
}

/** The coordinator has taken the process in. */
export interface Welcome {
  readonly heartbeat: Heartbeat;
  /** A token of the coordinator with the nonce of the hello. */
  readonly proof: string;
}

const refusalCodes = [
  "join-job",
  "join-build",
  "join-world-size",
  "join-rank",
  "join-rank-taken",
  "join-late",
  "token-invalid",
  "token-expired",
  "token-other-job",
  "peer-identity",
] as const;

/** The coordinator does not take the process in. */
export interface Refusal {
  readonly code: (typeof refusalCodes)[number];
  readonly message: string;
}

/** A refusal as the error that the joining side throws. */
export const refusalError = ({ code, message }: Refusal): JoinRefusedError | PlaceTakenError | TokenError | PeerIdentityError => {
  if (code === "peer-identity") return new PeerIdentityError(message);
  if (code === "token-invalid" || code === "token-expired" || code === "token-other-job") return new TokenError(code, message);
  if (code === "join-rank-taken" || code === "join-late") return new PlaceTakenError(code, message);
  return new JoinRefusedError(code, message);
};

// JSON and not msgpack: these come from anyone who finds the port, and V8's JSON parser has met everything.
const json = {
  encode: (message: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(message)),
  decode: (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)),
};

// What a stranger says stands in our log: no line ends, no control characters.
export const printable: RegExp = /^[ -~]*$/;

const helloSchema: z.ZodType<Hello> = z
  .strictObject({
    job: z.string().max(256).regex(printable),
    build: z.string().max(256).regex(printable),
    worldSize: z.int(),
    ranks: z.array(z.int().min(0).max(999_999_999)).min(1).max(ranksPerProcess),
    addresses: z.array(addressSchema).max(ranksPerProcess),
    hostName: z.string().min(1).max(255).regex(printable),
    token: z.string().max(8192),
    nonce: z.string().min(16).max(128),
  })
  .refine(({ ranks, addresses }) => ranks.length === addresses.length, "a hello needs one address per rank");

export const helloCodec: MessageCodec<Hello> = checkedCodec("a hello", helloSchema, json);

export const welcomeCodec: MessageCodec<Welcome> = checkedCodec(
  "a welcome",
  z.strictObject({
    heartbeat: z.strictObject({ intervalMilliseconds: z.number().positive(), lossMilliseconds: z.number().positive() }),
    proof: z.string().max(8192),
  }),
  json,
);

export const refusalCodec: MessageCodec<Refusal> = checkedCodec(
  "a refusal",
  z.strictObject({ code: z.enum(refusalCodes), message: z.string().max(8192) }),
  json,
);
