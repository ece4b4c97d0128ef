import type { Socket } from "node:net";
import { channelBinding } from "../security/channel-binding.ts";
import type { FrameSeal } from "../security/frame-seal.ts";
import { HandshakeAcceptor, type Proven, unprovenBytes } from "../security/handshake.ts";
import { isLoopback } from "../security/loopback.ts";
import { WireError } from "../wire/errors.ts";
import type { FrameHeader, FrameType } from "../wire/frame.ts";
import type { SocketFactory } from "./socket-factory.ts";
import { LinkFailedError, type LinkBusyError, LinkRefusedError } from "./errors.ts";
import { FrameSocket } from "./frame-socket.ts";
import { remoteEnd } from "./socket-ends.ts";
import { decodeRequest, encodeJson, judgeRequest, type LinkRequest, mismatchError } from "./handshake.ts";
import type { LinkSettings } from "./link-options.ts";

/** An accepted socket to an authenticated peer. */
export interface AcceptedSocket {
  readonly request: LinkRequest;
  readonly frames: FrameSocket;
  readonly remote: string;
  /** Whether both ends are processes of this machine, connected without a proxy or tunnel. */
  readonly direct: boolean;
}

/**
 * Response of a link to an accepted socket. If the link accepts the socket, `received` is the number of frames that
 * were received on the broken connection which the socket continues. `received` is undefined if the socket starts the
 * link. If the link refuses the socket, `refused` is the reason.
 */
export type Taken =
  | { readonly session: string; readonly received: number | undefined; readonly answered: () => void }
  | { readonly refused: LinkBusyError };

/** Receiver of accepted sockets. */
export interface SocketTaker {
  /** Called when the other end has proven that it knows the job's secret. */
  proven(): void;
  /** Adds the socket to its link, or returns the reason for refusing the socket. */
  take(accepted: AcceptedSocket): Taken;
}

/** Maximum size of a link request or of its response, including seals, in bytes. */
export const requestBytes = 32_768;

/**
 * Authenticates the other end of an accepted connection. The other end sends a hello, a proof that it knows the job's
 * secret, and a link request. A peer receives a welcome. A process of another job receives the reason for the refusal,
 * and its connection is closed within a second. Other connections are dropped without a reason.
 *
 * @returns a function that aborts the handshake.
 */
export const acceptSocket = (
  socket: Socket,
  factory: SocketFactory,
  settings: LinkSettings,
  taker: SocketTaker,
): (() => void) => {
  const { identity, key, checksum, sums, handsOver, handshakeMilliseconds, onRefused } = settings;
  const frames = new FrameSocket({ checksum, headerOnly: sums === "header" });
  const remote = remoteEnd(socket);
  const handshake = new HandshakeAcceptor({
    audience: "data",
    job: identity.job,
    key,
    binding: channelBinding(socket),
  });
  let due: "hello" | "proof" | "join" | "nothing" = "hello";
  let seals: Proven | undefined;
  let settled = false;
  const settle = (): boolean => {
    if (settled) return false;
    settled = true;
    clearTimeout(timer);
    return true;
  };
  const drop = (error: Error): void => {
    if (!settle()) return;
    frames.destroy();
    onRefused({ remote, error });
  };
  const refuse = (error: LinkRefusedError | LinkBusyError): void => {
    if (!settle()) return;
    writeFrame(frames, "refuse", encodeJson({ code: error.code, message: error.message }), seals?.sealer);
    frames.leave();
    onRefused({ remote, error });
  };
  const garbage = (error: unknown): LinkFailedError =>
    new LinkFailedError(
      "link-garbage",
      `${remote} is not a rank: ${error instanceof Error ? error.message : String(error)}`,
      {
        cause: error,
      },
    );

  const challenge = (payload: Uint8Array): void => {
    const answer = handshake.challenge(payload);
    if ("what" in answer) return refuse(mismatchError(identity.rank, remote, answer));
    due = "proof";
    writeFrame(frames, "challenge", answer.challenge);
  };
  const prove = (payload: Uint8Array): void => {
    seals = handshake.prove(payload);
    if (seals === undefined) return drop(mismatchError(identity.rank, remote, secretUnknown));
    due = "join";
    taker.proven();
  };
  const judge = (payload: Uint8Array): void => {
    const request = decodeRequest(payload);
    const wrong = judgeRequest(identity, request);
    if (wrong !== undefined) return refuse(wrong);
    const unproven = factory.refuse(socket, request.rank);
    if (unproven !== undefined)
      return refuse(
        new LinkRefusedError(
          "link-identity",
          `rank ${identity.rank} does not link with rank ${request.rank}: ${unproven}`,
        ),
      );
    const unmediated = request.from === remote;
    const direct = unmediated && isLoopback(socket.remoteAddress ?? "");
    const taken = taker.take({ request, frames, remote, direct });
    if ("refused" in taken) return refuse(taken.refused);
    settle();
    frames.hold();
    frames.headerOnly = sums === "header" || (sums === "unless-direct" && unmediated);
    const { session, received } = taken;
    const resume = received === undefined ? undefined : { session, received };
    const welcome: LinkRequest = { ...identity, to: request.rank, socket: request.socket, direct, handsOver, resume };
    writeFrame(frames, "welcome", encodeJson(welcome), seals!.sealer);
    taken.answered();
  };
  const take = ({ type }: FrameHeader, payload: Uint8Array): void => {
    const now = due;
    due = "nothing";
    if (type === "hello" && now === "hello") challenge(payload);
    else if (type === "proof" && now === "proof") prove(payload);
    else if (type === "join" && now === "join") judge(seals!.opener.open(type, payload));
    // The peer detected that this process does not know the peer's secret. The peer's message is not authenticated, so
    // the error does not quote this message.
    else if (type === "refuse" && now === "proof") drop(mismatchError(identity.rank, remote, secretUnknown));
    else drop(garbage(new Error(`it sent an unexpected ${type} frame`)));
  };

  const timer = setTimeout(
    () =>
      drop(
        new LinkFailedError(
          "link-timeout",
          `${remote} did not prove its identity within ${handshakeMilliseconds} ms after it connected to rank ${identity.rank}`,
        ),
      ),
    handshakeMilliseconds,
  );
  timer.unref();
  frames.open({
    limit: ({ type }) => {
      if (type === due) return due === "join" ? requestBytes : unprovenBytes;
      return type === "refuse" && due === "proof" ? unprovenBytes : 0;
    },
    target: ({ length }) => new Uint8Array(length),
    torn: () => undefined,
    frame: (header, payload) => {
      try {
        take(header, payload);
      } catch (error) {
        drop(garbage(error));
      }
    },
    closed: (error) => {
      if (error instanceof WireError && error.code === "protocol-version")
        refuse(new LinkRefusedError("link-protocol", error.message));
      else drop(garbage(error ?? new Error("it disconnected before it had proven its identity")));
    },
  });
  frames.attach(socket, "accepted");
  return () => {
    if (settle()) frames.destroy();
  };
};

const secretUnknown = { what: "secret", own: "", peer: "" } as const;

/** Writes a handshake frame. The frame is sealed after both ends of the connection have proven their identity. */
export const writeFrame = (frames: FrameSocket, type: FrameType, payload: Uint8Array, sealer?: FrameSeal): void =>
  frames.write({
    type,
    flags: 0,
    stream: 0,
    sequence: 0,
    tag: 0,
    payload: sealer === undefined ? payload : sealer.sealed(type, payload),
  });
