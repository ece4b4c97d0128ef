import { z } from "zod";
import type { Misfit } from "../security/handshake.ts";
import type { Flow } from "./flow.ts";
import { LinkRefusedError, type MisfitCode, type RefusalCode, refusalCodes } from "./errors.ts";

/** What ranks must have in common, and who this one is. */
export interface LinkIdentity extends Flow {
  readonly rank: number;
  readonly worldSize: number;
  readonly lanes: number;
  readonly socketsPerPair: number;
  /** Hash of the job file. */
  readonly job: string;
  /** Of the program; ranks of different builds might cut or order sums differently. */
  readonly build: string;
  /** Of this listener; that of a rank which was started again is another. */
  readonly session: string;
}

/** Goes on with a link whose connection broke. */
export interface Resume {
  /** Of who is spoken to. */
  readonly session: string;
  /** Frames that have come from there, modulo 2^32. */
  readonly received: number;
}

/**
 * Who asks for a link, and for which; the answer says the same of the other side. Both have proven before that they
 * know the secret.
 */
export interface LinkRequest extends LinkIdentity {
  /** Whom it wants to talk to, and which of its sockets this is. */
  readonly to: number;
  readonly socket: number;
  /**
   * Where the connection comes from, as who dials sees it: seen otherwise by who accepts, something stands between
   * them.
   */
  readonly from?: string | undefined;
  /**
   * Of a welcome: the connection is between two processes of this machine and nothing else, so it ends only with one of
   * them.
   */
  readonly direct?: boolean | undefined;
  /** It can let its rank's own thread read and write a connection. */
  readonly handsOver?: boolean | undefined;
  /** Of a request: the connection is one for that, not one of the link's sockets. */
  readonly express?: boolean | undefined;
  /** Absent where the link is new. */
  readonly resume?: Resume | undefined;
}

const count = z.int().min(0);
const text = z.string().max(8192);
// Fields that we do not know are left out, not refused: a neighbour of the next minor version may say more.
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

/** @throws SyntaxError or ZodError when the bytes are none. */
export const decodeRequest = (bytes: Uint8Array): LinkRequest => requestSchema.parse(parseJson(bytes));

/** @throws SyntaxError or ZodError when the bytes are none. */
export const decodeRefusal = (bytes: Uint8Array): { code: RefusalCode; message: string } =>
  refusalSchema.parse(parseJson(bytes));

const settings = (identity: LinkIdentity): string =>
  `${identity.lanes} lanes, ${identity.socketsPerPair} sockets per pair, frames of ${identity.frameBytes} bytes, ${identity.earlyBytes} bytes unasked`;

const otherJob = (own: string, peer: string): string =>
  `it belongs to job ${peer}, not ${own}; give every job its own port or rendezvous`;

/**
 * Why the rank `own` will not talk to who sends `request`, or undefined. Secrets and certificates are judged elsewhere.
 */
export const judgeRequest = (own: LinkIdentity, request: LinkRequest): LinkRefusedError | undefined => {
  const refuse = (code: MisfitCode, what: string): LinkRefusedError =>
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
      `it is of a world of ${request.worldSize} ranks, not ${own.worldSize}; start all ranks with one world size`,
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
      `it says that it is rank ${request.rank} of ${request.worldSize} and speaks to rank ${request.to} by socket ${request.socket}; check the roster, each rank once`,
    );
  return undefined;
};

/** What two ranks that do not fit tell each other, before either has proven anything. */
export const misfitError = (rank: number, who: string, { what, own, peer }: Misfit): LinkRefusedError => {
  const beginning = `rank ${rank} does not link with ${who}: `;
  switch (what) {
    case "job":
      return new LinkRefusedError("link-job", beginning + otherJob(own, peer));
    case "minor":
      return new LinkRefusedError(
        "link-protocol",
        `${beginning}it speaks version ${peer} of the protocol, not ${own} or a neighbour of it; run the same version of Skein on all hosts`,
      );
    case "secret":
      return new LinkRefusedError(
        "link-secret",
        `${beginning}it does not know this job's secret; give all ranks the same SKEIN_SECRET`,
      );
  }
};
