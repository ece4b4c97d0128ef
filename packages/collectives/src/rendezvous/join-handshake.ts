import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { identityOf, provesWhat } from "../security/certificate-names.ts";
import { channelBinding } from "../security/channel-binding.ts";
import { HandshakeAcceptor, type HandshakeMismatch, type Proven, unprovenBytes } from "../security/handshake.ts";
import type { FrameType } from "../wire/frame.ts";
import type { CheckedRendezvousOptions } from "./coordinator-options.ts";
import { RendezvousError } from "./errors.ts";
import { joinBytes, joinCodec, type JoinRequest, type Refusal } from "./handshake-messages.ts";
import { mismatch, otherJob } from "./membership.ts";
import { formatRanks } from "../ranks.ts";

const useOneSet = "use the files of one skein-train certs init on all hosts";

/** Whether the certificate is revoked. At run time, `authorizationError` is a string, unlike its declared type. */
const isRevoked = (socket: TLSSocket): boolean => String(socket.authorizationError).includes("CERT_REVOKED");

/**
 * Returns the refusal to send to a process that TLS does not trust; undefined without TLS, or if TLS trusts the
 * process.
 */
const distrust = (socket: Socket): Refusal | undefined =>
  socket instanceof TLSSocket && !socket.authorized
    ? {
        code: "peer-identity",
        message: isRevoked(socket)
          ? "the certificate of the process was revoked; issue a new one with skein-train certs renew, and give it to that process alone"
          : `the process has no certificate of the coordinator's authority (${String(socket.authorizationError)}); ${useOneSet}`,
      }
    : undefined;

/**
 * Returns the refusal to send to a process whose certificate does not prove all requested ranks; undefined without TLS,
 * or if the certificate proves all ranks.
 */
const unprovenRanks = (socket: Socket, ranks: readonly number[]): Refusal | undefined => {
  if (!(socket instanceof TLSSocket)) return undefined;
  const proven = identityOf(socket.getPeerCertificate().subjectaltname);
  if (ranks.every((rank) => proven.ranks.includes(rank))) return undefined;
  return {
    code: "peer-identity",
    message: `the process joins with ${formatRanks(ranks)}, but its certificate proves ${provesWhat(proven)}; give each process the certificate of its ranks`,
  };
};

const refusalOf = ({ what, own, peer }: HandshakeMismatch): Refusal =>
  what === "job"
    ? otherJob(own, peer)
    : {
        code: "protocol-version",
        message: `this process uses version ${peer} of the protocol, the coordinator ${own}, and only adjacent minor versions are compatible; run the same version of Skein on all hosts`,
      };

/** Next action of the coordinator after it has processed a handshake frame. */
export type Step =
  /** The challenge must be sent. */
  | { readonly kind: "challenge"; readonly payload: Uint8Array }
  /** The process has proven that it knows the job's secret. Frames are sealed from now on. */
  | { readonly kind: "proven"; readonly seals: Proven }
  /** The process requests ranks with a valid request. Whether the ranks are available is checked elsewhere. */
  | { readonly kind: "join"; readonly request: JoinRequest }
  | { readonly kind: "refuse"; readonly refusal: Refusal; readonly request?: JoinRequest };

/**
 * Processes the frames of a joining process in their only valid order: a hello, the proof that the process knows the
 * job's secret, a join request. Before the proof, the process may send at most one kilobyte at a time, and only the
 * challenge's random number is stored for this process.
 */
export class JoinHandshake {
  readonly #socket: Socket;
  readonly #options: CheckedRendezvousOptions;
  readonly #handshake: HandshakeAcceptor;
  #due: "hello" | "proof" | "join" | "nothing" = "hello";

  constructor(socket: Socket, options: CheckedRendezvousOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#handshake = new HandshakeAcceptor({
      audience: "control",
      job: options.job,
      key: options.key,
      binding: channelBinding(socket),
    });
  }

  /** Returns the current maximum payload length for a frame of this type, in bytes. */
  limit(type: FrameType): number {
    if (type === "refuse") return this.#due === "proof" ? unprovenBytes : 0;
    if (type !== this.#due) return 0;
    return type === "join" ? joinBytes : unprovenBytes;
  }

  /**
   * Processes a frame.
   *
   * @throws RendezvousError `control-message` if a frame is unexpected or invalid.
   */
  take(type: FrameType, payload: Uint8Array): Step {
    const due = this.#due;
    this.#due = "nothing";
    if (type === "hello" && due === "hello") return this.#hello(payload);
    if (type === "proof" && due === "proof") {
      const seals = this.#handshake.prove(payload);
      if (seals === undefined) throw fault("its proof is wrong: it does not know this job's secret");
      this.#due = "join";
      return { kind: "proven", seals };
    }
    if (type === "join" && due === "join") {
      const request = joinCodec.decode(payload);
      const refusal = unprovenRanks(this.#socket, request.ranks) ?? mismatch(this.#options, request);
      return refusal === undefined ? { kind: "join", request } : { kind: "refuse", refusal, request };
    }
    // The log does not quote the message, because its sender is not authenticated.
    if (type === "refuse" && due === "proof")
      throw fault(
        "it left, because this coordinator does not know its job's secret; give every process of a job the same SKEIN_SECRET",
      );
    throw fault(`unexpected ${type} frame; the peer uses another protocol, or is not a rank`);
  }

  #hello(payload: Uint8Array): Step {
    const distrusted = distrust(this.#socket);
    if (distrusted !== undefined) return { kind: "refuse", refusal: distrusted };
    let answer: ReturnType<HandshakeAcceptor["challenge"]>;
    try {
      answer = this.#handshake.challenge(payload);
    } catch (error) {
      throw fault("its first frame is not a valid hello", error);
    }
    if ("what" in answer) return { kind: "refuse", refusal: refusalOf(answer) };
    this.#due = "proof";
    return { kind: "challenge", payload: answer.challenge };
  }
}

const fault = (what: string, cause?: unknown): RendezvousError =>
  new RendezvousError("control-message", what, { cause });
