import { z } from "zod";
import type { Flow } from "./flow.ts";
import { LinkRefusedError, type RefusalCode, refusalCodes } from "./errors.ts";

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
  /** Shown to every peer. */
  readonly token?: string | undefined;
}

/** What who dials says first, and who accepts answers. */
export interface Hello extends LinkIdentity {
  /** Whom it wants to talk to, and which of its sockets this is. */
  readonly to: number;
  readonly socket: number;
}

const count = z.int().min(0);
const text = z.string().max(8192);
const helloSchema = z.strictObject({
  rank: count,
  worldSize: count,
  lanes: count,
  socketsPerPair: count,
  frameBytes: count,
  earlyBytes: count,
  job: text,
  build: text,
  token: text.optional(),
  to: count,
  socket: count,
});
const refusalSchema = z.strictObject({ code: z.enum(refusalCodes), message: text });

export const encodeJson = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
const parseJson = (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(bytes));

/** @throws SyntaxError or ZodError when the bytes are none. */
export const decodeHello = (bytes: Uint8Array): Hello => helloSchema.parse(parseJson(bytes)) as Hello;

/** @throws SyntaxError or ZodError when the bytes are none. */
export const decodeRefusal = (bytes: Uint8Array): { code: RefusalCode; message: string } => refusalSchema.parse(parseJson(bytes));

const settings = (identity: LinkIdentity): string =>
  `${identity.lanes} lanes, ${identity.socketsPerPair} sockets per pair, frames of ${identity.frameBytes} bytes, ${identity.earlyBytes} bytes unasked`;

/** Why the rank `own` will not talk to who says `hello`, or undefined. Tokens and certificates are judged elsewhere. */
export const judgeHello = (own: LinkIdentity, hello: Hello): LinkRefusedError | undefined => {
  const refuse = (code: RefusalCode, what: string): LinkRefusedError =>
    new LinkRefusedError(code, `rank ${own.rank} does not link with rank ${hello.rank}: ${what}`);
  if (hello.job !== own.job)
    return refuse("link-job", `it belongs to job ${hello.job}, not ${own.job}; give every job its own port or rendezvous`);
  if (hello.build !== own.build)
    return refuse("link-build", `it runs build ${hello.build}, not ${own.build}; install the same version on all hosts`);
  if (hello.worldSize !== own.worldSize)
    return refuse(
      "link-world-size",
      `it is of a world of ${hello.worldSize} ranks, not ${own.worldSize}; start all ranks with one world size`,
    );
  if (settings(hello) !== settings(own))
    return refuse("link-settings", `it has ${settings(hello)}, not ${settings(own)}; give all ranks the same transport settings`);
  if (hello.rank >= own.worldSize || hello.rank === own.rank || hello.to !== own.rank || hello.socket >= own.socketsPerPair)
    return refuse(
      "link-rank",
      `it says that it is rank ${hello.rank} of ${hello.worldSize} and speaks to rank ${hello.to} by socket ${hello.socket}; check the roster, each rank once`,
    );
  return undefined;
};
