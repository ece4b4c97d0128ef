import { z } from "zod";
import type { HandshakeMismatch } from "../security/handshake.ts";
import type { Flow } from "./flow.ts";
import { LinkRefusedError, type MismatchCode, type RefusalCode, refusalCodes } from "./errors.ts";

/** Settings that all ranks of a world must share, and the identity of one rank. */
export interface LinkIdentity extends Flow {
  readonly rank: number;
  readonly worldSize: number;
  readonly lanes: number;
  readonly socketsPerPair: number;
  /** Hash of the job file. */
  readonly job: string;
  /** Version of the program. Ranks of different builds might segment or order sums differently. */
  readonly build: string;
  /** Random identifier of this listener. A restarted rank has a different session. */
  readonly session: string;
}

/** Request to continue a link whose connection broke. */
export interface Resume {
  /** Session of the rank that receives this request. */
  readonly session: string;
  /** Number of frames that the requesting rank has received from the rank that receives this request, modulo 2^32. */
  readonly received: number;
}

/**
 * Request to add a socket to a link. The response has the same fields, with the values of the responding rank. Both
 * ranks have already proven that they know the secret.
 */
export interface LinkRequest extends LinkIdentity {
  /** Rank that receives the request. */
  readonly to: number;
  readonly socket: number;
  /**
   * Local address of the connection as seen by the dialing process. If the accepting process sees a different address,
   * there is a proxy or tunnel between the two processes.
   */
  readonly from?: string | undefined;
  /**
   * Whether the connection is directly between two processes of this machine, so that the connection ends only when one
   * of the processes ends. Present only in a welcome.
   */
  readonly direct?: boolean | undefined;
  /** Whether this rank's compute thread can read and write an express connection. */
  readonly handsOver?: boolean | undefined;
  /** Whether the connection is for the ranks' compute threads instead of the link's data. Present only in a request. */
  readonly express?: boolean | undefined;
  /** Broken connection to continue. Absent: the link is new. */
  readonly resume?: Resume | undefined;
}

const count = z.int().min(0);
const text = z.string().max(8192);
// Unknown fields are ignored, not refused, because a peer with the next minor version may send more fields.
const requestSchema = z.object({
  rank: count,
  worldSize: count,
  lanes: count,
  socketsPerPair: count,
  frameBytes: count,
  earlyBytes: count,
  job: text,
  build: text,
  session: text,
  to: count,
  socket: count,
  from: text.optional(),
  direct: z.boolean().optional(),
  handsOver: z.boolean().optional(),
  express: z.boolean().optional(),
  resume: z.object({ session: text, received: count }).optional(),
});
const refusalSchema = z.object({ code: z.enum(refusalCodes), message: text });

export const encodeJson = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
const parseJson = (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(bytes));

/**
 * Decodes a link request.
 *
 * @throws SyntaxError or ZodError if the bytes are not a request.
 */
export const decodeRequest = (bytes: Uint8Array): LinkRequest => requestSchema.parse(parseJson(bytes));

/**
 * Decodes a refusal.
 *
 * @throws SyntaxError or ZodError if the bytes are not a refusal.
 */
export const decodeRefusal = (bytes: Uint8Array): { code: RefusalCode; message: string } =>
  refusalSchema.parse(parseJson(bytes));

const settings = (identity: LinkIdentity): string =>
  `${identity.lanes} lanes, ${identity.socketsPerPair} sockets per pair, frames of ${identity.frameBytes} bytes, ${identity.earlyBytes} unrequested bytes`;

const otherJob = (own: string, peer: string): string =>
  `it belongs to job ${peer}, not ${own}; give every job its own port or rendezvous`;

/**
 * Returns the reason why rank `own` refuses a link request, or undefined if the rank accepts the request. Secrets and
 * certificates are checked elsewhere.
 */
export const judgeRequest = (own: LinkIdentity, request: LinkRequest): LinkRefusedError | undefined => {
  const refuse = (code: MismatchCode, what: string): LinkRefusedError =>
    new LinkRefusedError(code, `rank ${own.rank} does not link with rank ${request.rank}: ${what}`);
  if (request.job !== own.job) return refuse("link-job", otherJob(own.job, request.job));
  if (request.build !== own.build)
    return refuse(
      "link-build",
      `it runs build ${request.build}, not ${own.build}; install the same version on all hosts`,
    );
  if (request.worldSize !== own.worldSize)
    return refuse(
      "link-world-size",
      `its world has ${request.worldSize} ranks, not ${own.worldSize}; start all ranks with the same world size`,
    );
  if (settings(request) !== settings(own))
    return refuse(
      "link-settings",
      `it has ${settings(request)}, not ${settings(own)}; give all ranks the same transport settings`,
    );
  if (
    request.rank >= own.worldSize ||
    request.rank === own.rank ||
    request.to !== own.rank ||
    request.socket >= own.socketsPerPair
  )
    return refuse(
      "link-rank",
      `it claims to be rank ${request.rank} of ${request.worldSize} and addresses socket ${request.socket} of rank ${request.to}; check that the roster contains each rank once`,
    );
  return undefined;
};

/** Converts a mismatch in the handshake of two ranks to the error that each of the two ranks throws. */
export const mismatchError = (
  rank: number,
  peerName: string,
  { what, own, peer }: HandshakeMismatch,
): LinkRefusedError => {
  const beginning = `rank ${rank} does not link with ${peerName}: `;
  switch (what) {
    case "job":
      return new LinkRefusedError("link-job", beginning + otherJob(own, peer));
    case "minor":
      return new LinkRefusedError(
        "link-protocol",
        `${beginning}it uses version ${peer} of the protocol, not ${own} or an adjacent minor version; run the same version of Skein on all hosts`,
      );
    case "secret":
      return new LinkRefusedError(
        "link-secret",
        `${beginning}it does not know this job's secret; give all ranks the same SKEIN_SECRET`,
      );
  }
};
