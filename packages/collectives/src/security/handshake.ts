import { createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { agreeMinor, protocolVersion } from "../wire/version.ts";
import { printable } from "./printable.ts";
import { FrameSeal } from "./frame-seal.ts";

/** Purpose of a connection. A proof for one purpose is invalid for the other purpose. */
export type Audience = "control" | "data";

/**
 * Maximum size of a hello, a challenge or a proof, in bytes. No process accepts larger messages before the peer is
 * authenticated.
 */
export const unprovenBytes = 1024;

/** Values that the two processes of a connection must share for a handshake. */
export interface HandshakeContext {
  readonly audience: Audience;
  /** Hash of the job. */
  readonly job: string;
  /** Key derived from the secret by `jobKey`. */
  readonly key: Uint8Array;
  /** Channel binding of the connection, from `channelBinding`. */
  readonly binding: Uint8Array;
  /** Minor version of the protocol that this process uses. Default: the minor version of this build. */
  readonly minor?: number;
}

/**
 * Reason why two processes cannot continue a handshake. The reason is sent to the peer although neither process is
 * authenticated.
 */
export interface HandshakeMismatch {
  readonly what: "job" | "minor" | "secret";
  readonly own: string;
  readonly peer: string;
}

/** Result of a handshake in which both processes have proven that they know the secret. */
export interface Proven {
  /** Highest minor version that both processes support. */
  readonly minor: number;
  /** Seals frames that this process sends. */
  readonly sealer: FrameSeal;
  /** Opens frames sent by the peer. */
  readonly opener: FrameSeal;
}

const nonceBytes = 32;
const proofBytes = 32;

const nonce = z.string().regex(/^[0-9a-f]{64}$/, `${nonceBytes} bytes in hexadecimal`);
const minor = z.int().min(0).max(255);
// Unknown fields are ignored, not refused, because a peer with the next minor version may send more fields.
const helloSchema = z.object({
  audience: z.enum(["control", "data"]),
  minor,
  job: z.string().max(256).regex(printable),
  nonce,
});
const challengeSchema = z.object({ minor, nonce });

const json = {
  encode: (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value)),
  decode: (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)),
};

/**
 * Derives the 32-byte key of a job from the job's secret. If two jobs have the same secret, a proof for one job is
 * invalid for the other job.
 */
export const jobKey = (secret: string, job: string): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", secret, new Uint8Array(0), `skein job ${job}`, 32));

/** Keys that both processes can derive when both nonces are known, and that cannot be derived without the job's key. */
class Session {
  readonly #key: Uint8Array;

  constructor({ audience, key, binding }: HandshakeContext, hello: Uint8Array, challenge: Uint8Array) {
    const transcript = createHash("sha256").update(`skein handshake ${protocolVersion.major}\0`);
    for (const part of [new TextEncoder().encode(audience), binding, hello, challenge]) {
      const length = new Uint8Array(4);
      new DataView(length.buffer).setUint32(0, part.byteLength, true);
      transcript.update(length).update(part);
    }
    this.#key = createHmac("sha256", key).update(transcript.digest()).digest();
  }

  derive(label: string): Uint8Array {
    return createHmac("sha256", this.#key).update(label).digest();
  }

  proves(label: string, proof: Uint8Array): boolean {
    return proof.byteLength === proofBytes && timingSafeEqual(proof, this.derive(label));
  }
}

const labels = {
  accepts: "who accepts knows the secret",
  dials: "who dials knows the secret",
  acceptsFrames: "frames of who accepts",
  dialsFrames: "frames of who dials",
} as const;

/**
 * Handshake of the dialing process: sends a hello, checks the peer's proof that the peer knows the secret, and only
 * then sends the proof of this process.
 *
 * Both proofs are message authentication codes over the whole exchange: purpose, job, versions, a fresh random number
 * of each process and, over TLS, the channel binding. Therefore a proof is invalid on any other connection. One object
 * serves one connection.
 *
 * Source: ISO/IEC 9798-4, three-pass mutual authentication with random numbers; HKDF of RFC 5869; channel binding of
 * RFC 9266.
 */
export class HandshakeDialler {
  readonly #context: HandshakeContext;
  readonly #minor: number;
  readonly #hello: Uint8Array;

  constructor(context: HandshakeContext) {
    this.#context = context;
    this.#minor = context.minor ?? protocolVersion.minor;
    this.#hello = json.encode({
      audience: context.audience,
      minor: this.#minor,
      job: context.job,
      nonce: randomBytes(nonceBytes).toString("hex"),
    });
  }

  /** Returns the first message to send. */
  hello(): Uint8Array {
    return this.#hello;
  }

  /**
   * Checks the peer's response.
   *
   * @returns the proof to send, or the reason for not sending a proof: the peer does not know the secret, or the peer's
   * version is incompatible.
   * @throws SyntaxError, TypeError or ZodError if the response is not a challenge.
   */
  answer(payload: Uint8Array): { readonly proof: Uint8Array; readonly proven: Proven } | HandshakeMismatch {
    const [proof, challenge] = [payload.subarray(0, proofBytes), payload.subarray(proofBytes)];
    const { minor: peer } = challengeSchema.parse(json.decode(challenge));
    const session = new Session(this.#context, this.#hello, challenge);
    if (!session.proves(labels.accepts, proof)) return { what: "secret", own: "", peer: "" };
    const agreed = agreeMinor(this.#minor, peer);
    if (agreed === undefined) return { what: "minor", own: versionOf(this.#minor), peer: versionOf(peer) };
    return {
      proof: session.derive(labels.dials),
      proven: {
        minor: agreed,
        sealer: new FrameSeal(session.derive(labels.dialsFrames)),
        opener: new FrameSeal(session.derive(labels.acceptsFrames)),
      },
    };
  }
}

/**
 * Handshake of the accepting process: responds to a hello with a challenge and a proof that this process knows the
 * secret. Until the peer's proof arrives, only the values of this exchange are stored.
 */
export class HandshakeAcceptor {
  readonly #context: HandshakeContext;
  #pending: { readonly session: Session; readonly minor: number } | undefined;

  constructor(context: HandshakeContext) {
    this.#context = context;
  }

  /**
   * Processes a hello.
   *
   * @returns the challenge to send, or the reason for not sending a challenge.
   * @throws SyntaxError, TypeError, ZodError or Error if the bytes are not a hello, or are a hello for another purpose.
   */
  challenge(hello: Uint8Array): { readonly challenge: Uint8Array } | HandshakeMismatch {
    const { audience, job, minor: ownMinor = protocolVersion.minor } = this.#context;
    const peer = helloSchema.parse(json.decode(hello));
    if (peer.audience !== audience)
      throw new Error(`it asks for a ${peer.audience} connection, and this port serves ${audience} connections`);
    if (peer.job !== job) return { what: "job", own: job, peer: peer.job };
    const agreed = agreeMinor(ownMinor, peer.minor);
    if (agreed === undefined) return { what: "minor", own: versionOf(ownMinor), peer: versionOf(peer.minor) };
    const body = json.encode({ minor: ownMinor, nonce: randomBytes(nonceBytes).toString("hex") });
    const session = new Session(this.#context, hello, body);
    this.#pending = { session, minor: agreed };
    return { challenge: Buffer.concat([session.derive(labels.accepts), body]) };
  }

  /** Checks the peer's proof in a single attempt. Returns undefined if the proof is invalid. */
  prove(proof: Uint8Array): Proven | undefined {
    const pending = this.#pending;
    this.#pending = undefined;
    if (pending === undefined || !pending.session.proves(labels.dials, proof)) return undefined;
    const { session, minor: agreed } = pending;
    return {
      minor: agreed,
      sealer: new FrameSeal(session.derive(labels.acceptsFrames)),
      opener: new FrameSeal(session.derive(labels.dialsFrames)),
    };
  }
}

const versionOf = (minorVersion: number): string => `${protocolVersion.major}.${minorVersion}`;
