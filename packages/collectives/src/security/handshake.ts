import { createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { agreeMinor, protocolVersion } from "../wire/version.ts";
import { printable } from "./printable.ts";
import { FrameSeal } from "./frame-seal.ts";

/** What a connection is for. A proof for one purpose is worth nothing for another. */
export type Audience = "control" | "data";

/** The most bytes of a hello, a challenge or a proof: all that either side takes before the other has proven itself. */
export const unprovenBytes = 1024;

/** What both sides of a connection must have in common before they can prove anything. */
export interface HandshakePlace {
  readonly audience: Audience;
  /** Hash of the job. */
  readonly job: string;
  /** From `jobKey`. */
  readonly key: Uint8Array;
  /** From `channelBinding`. */
  readonly binding: Uint8Array;
  /** Minor version of the protocol that this side speaks. */
  readonly minor?: number;
}

/** Why two sides cannot go on: told to the peer, although neither has proven anything yet. */
export interface Misfit {
  readonly what: "job" | "minor" | "secret";
  readonly own: string;
  readonly peer: string;
}

/** Both sides have proven that they know the secret. */
export interface Proven {
  /** Minor version that both speak. */
  readonly minor: number;
  /** For what this side sends. */
  readonly sealer: FrameSeal;
  /** For what the peer sends. */
  readonly opener: FrameSeal;
}

const nonceBytes = 32;
const proofBytes = 32;

const nonce = z.string().regex(/^[0-9a-f]{64}$/, `${nonceBytes} bytes in hexadecimal`);
const minor = z.int().min(0).max(255);
// Fields that we do not know are left out, not refused: a neighbour of the next minor version may say more.
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
 * The key of a job, from its secret: so a secret that two jobs share proves nothing from one to the other. 32 bytes.
 */
export const jobKey = (secret: string, job: string): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", secret, new Uint8Array(0), `skein job ${job}`, 32));

/** What both sides can derive once both nonces are known, and nobody without the key. */
class Session {
  readonly #key: Uint8Array;

  constructor({ audience, key, binding }: HandshakePlace, hello: Uint8Array, challenge: Uint8Array) {
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
 * The side that dials. It says hello, is shown that the other side knows the secret, and only then shows that it does.
 *
 * Both proofs are codes over the whole exchange: purpose, job, versions, a fresh random number of each side and, over
 * TLS, what only the two ends of the connection know. So none is worth anything on another connection. One object
 * serves one connection.
 *
 * Source: ISO/IEC 9798-4, three-pass mutual authentication with random numbers; HKDF of RFC 5869; channel binding of
 * RFC 9266.
 */
export class HandshakeDialler {
  readonly #place: HandshakePlace;
  readonly #minor: number;
  readonly #hello: Uint8Array;

  constructor(place: HandshakePlace) {
    this.#place = place;
    this.#minor = place.minor ?? protocolVersion.minor;
    this.#hello = json.encode({
      audience: place.audience,
      minor: this.#minor,
      job: place.job,
      nonce: randomBytes(nonceBytes).toString("hex"),
    });
  }

  /** What to say first. */
  hello(): Uint8Array {
    return this.#hello;
  }

  /**
   * Look at the answer.
   *
   * @returns the proof to send; or why there will be none, because the peer does not know the secret, or speaks too
   * different a version.
   * @throws SyntaxError, TypeError or ZodError when it is no challenge.
   */
  answer(payload: Uint8Array): { readonly proof: Uint8Array; readonly proven: Proven } | Misfit {
    const [proof, challenge] = [payload.subarray(0, proofBytes), payload.subarray(proofBytes)];
    const { minor: peer } = challengeSchema.parse(json.decode(challenge));
    const session = new Session(this.#place, this.#hello, challenge);
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
 * The side that accepts: it answers a hello with a challenge and its own proof, and keeps nothing else until it has the
 * peer's.
 */
export class HandshakeAcceptor {
  readonly #place: HandshakePlace;
  #pending: { readonly session: Session; readonly minor: number } | undefined;

  constructor(place: HandshakePlace) {
    this.#place = place;
  }

  /**
   * Answer a hello.
   *
   * @returns the challenge to send, or why there will be none.
   * @throws SyntaxError, TypeError, ZodError or Error when it is no hello, or one for another purpose.
   */
  challenge(hello: Uint8Array): { readonly challenge: Uint8Array } | Misfit {
    const { audience, job, minor: ownMinor = protocolVersion.minor } = this.#place;
    const peer = helloSchema.parse(json.decode(hello));
    if (peer.audience !== audience)
      throw new Error(`it asks for a ${peer.audience} connection, and this is the place for ${audience} connections`);
    if (peer.job !== job) return { what: "job", own: job, peer: peer.job };
    const agreed = agreeMinor(ownMinor, peer.minor);
    if (agreed === undefined) return { what: "minor", own: versionOf(ownMinor), peer: versionOf(peer.minor) };
    const body = json.encode({ minor: ownMinor, nonce: randomBytes(nonceBytes).toString("hex") });
    const session = new Session(this.#place, hello, body);
    this.#pending = { session, minor: agreed };
    return { challenge: Buffer.concat([session.derive(labels.accepts), body]) };
  }

  /** Check the peer's proof, once; undefined where it is none. */
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
