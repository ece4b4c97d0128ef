import { channelBinding } from "../security/channel-binding.ts";
import { PeerIdentityError, RevokedPeerError } from "../security/errors.ts";
import { HandshakeDialler, type Proven, unprovenBytes } from "../security/handshake.ts";
import { tlsReasonOf } from "../security/tls-fault.ts";
import { WireError } from "../wire/errors.ts";
import type { FrameType } from "../wire/frame.ts";
import { requestBytes, writeFrame } from "./accept.ts";
import type { SocketFactory } from "./socket-factory.ts";
import { LinkFailedError, LinkRefusedError, refusalError } from "./errors.ts";
import { FrameSocket } from "./frame-socket.ts";
import {
  decodeRefusal,
  decodeRequest,
  encodeJson,
  judgeRequest,
  type LinkRequest,
  mismatchError,
  type Resume,
} from "./handshake.ts";
import { localEnd } from "./socket-ends.ts";
import type { LinkSettings } from "./link-options.ts";

/** Address on which a peer listens for links. */
export interface PeerAddress {
  readonly rank: number;
  readonly host: string;
  readonly port: number;
}

const firstRestMilliseconds = 20;
const longestRestMilliseconds = 500;

/** The peer does not listen yet, or was busy. Another attempt may succeed. */
class Unreachable extends Error {}

/**
 * Index of the socket within a link, or "express" for the socket that is read and written by the ranks' compute
 * threads.
 */
type SocketIndex = number | "express";

/** A socket to a peer, and the peer's welcome. */
export interface DialledSocket {
  readonly frames: FrameSocket;
  readonly welcome: LinkRequest;
}

// If connections to a process are refused for this time, the process counts as ended. If a process has ended, its host
// refuses all connections. A proxy that restarts refuses connections only briefly.
const refusedMilliseconds = 1500;

/**
 * Connects to a peer, checks that the peer knows the job's secret, proves that this process knows the secret, and
 * exchanges identities. Retries with increasing pauses while no process listens.
 *
 * @throws LinkRefusedError, LinkBusyError, PeerIdentityError if this process or the peer does not belong to the job;
 * LinkFailedError if no process responds before `deadline`, or the responding process is not a rank.
 */
export const dialPeer = async (
  peer: PeerAddress,
  index: SocketIndex,
  factory: SocketFactory,
  settings: LinkSettings,
  deadline: number,
  signal: AbortSignal,
): Promise<DialledSocket> => {
  for (let rest = firstRestMilliseconds; ; rest = Math.min(2 * rest, longestRestMilliseconds)) {
    try {
      return await dialOnce(peer, index, factory, settings, signal);
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      if (signal.aborted || performance.now() + rest > deadline)
        throw new LinkFailedError(
          "link-unreachable",
          `rank ${settings.identity.rank} cannot reach rank ${peer.rank} at ${peer.host}:${peer.port}: ${error.message}; check that it runs, and that no firewall blocks the connection`,
          { cause: error },
        );
    }
    await pause(rest, signal);
  }
};

const pause = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener("abort", end);
  });

/**
 * Connects to a peer again, to continue a link whose connection broke. Retries until the peer responds, or until
 * connections have been refused for `refusedMilliseconds`.
 *
 * @param resume returns the state from which the link continues. Called before each attempt.
 * @throws the errors of `dialPeer`.
 */
export const redialPeer = async (
  peer: PeerAddress,
  index: number,
  factory: SocketFactory,
  settings: LinkSettings,
  resume: () => Resume,
  signal: AbortSignal,
): Promise<DialledSocket> => {
  let refusedSince = Infinity;
  for (let rest = firstRestMilliseconds; ; rest = Math.min(2 * rest, longestRestMilliseconds)) {
    try {
      return await dialOnce(peer, index, factory, settings, signal, resume());
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      const refused = (error.cause as NodeJS.ErrnoException | undefined)?.code === "ECONNREFUSED";
      refusedSince = refused ? Math.min(refusedSince, performance.now()) : Infinity;
      if (signal.aborted || performance.now() - refusedSince > refusedMilliseconds)
        throw new LinkFailedError(
          "link-unreachable",
          `no process listens at ${peer.host}:${peer.port} any more: its process has ended`,
          {
            cause: error,
          },
        );
    }
    await pause(rest, signal);
  }
};

const dialOnce = (
  peer: PeerAddress,
  index: SocketIndex,
  factory: SocketFactory,
  settings: LinkSettings,
  signal: AbortSignal,
  resume?: Resume,
): Promise<DialledSocket> =>
  new Promise((resolve, reject) => {
    const { identity, key, checksum, handsOver, handshakeMilliseconds } = settings;
    const frames = new FrameSocket({ checksum, headerOnly: false }); // The dialing side sends no data during the handshake.
    const socket = factory.dial(peer.host, peer.port, peer.rank, frames.readInto());
    const fail = (error: Error): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      frames.destroy();
      reject(error);
    };
    const abort = (): void => fail(new Unreachable("the attempt was aborted"));
    const timer = setTimeout(
      () => fail(new Unreachable(`no answer for ${handshakeMilliseconds} ms`)),
      handshakeMilliseconds,
    );
    signal.addEventListener("abort", abort, { once: true });

    let handshake: HandshakeDialler | undefined;
    let seals: Proven | undefined;
    let due: "challenge" | "welcome" = "challenge";
    const prove = (payload: Uint8Array): void => {
      const answer = handshake!.answer(payload);
      if ("what" in answer) {
        writeFrame(frames, "refuse", new Uint8Array(0));
        return fail(mismatchError(identity.rank, `the process at ${peer.host}:${peer.port}`, answer));
      }
      seals = answer.proven;
      due = "welcome";
      writeFrame(frames, "proof", answer.proof);
      const socketFields = index === "express" ? { socket: 0, express: true } : { socket: index };
      const request: LinkRequest = {
        ...identity,
        ...socketFields,
        to: peer.rank,
        from: localEnd(socket),
        handsOver,
        resume,
      };
      writeFrame(frames, "join", encodeJson(request), seals.sealer);
    };
    const judge = (payload: Uint8Array): void => {
      const welcome = decodeRequest(payload);
      const wrong = judgeRequest(identity, welcome);
      if (wrong !== undefined) return fail(wrong);
      if (welcome.rank !== peer.rank)
        return fail(
          new LinkRefusedError(
            "link-rank",
            `rank ${identity.rank} found rank ${welcome.rank} at ${peer.host}:${peer.port}, where rank ${peer.rank} should be; check the roster`,
          ),
        );
      frames.hold();
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      resolve({ frames, welcome });
    };
    const take = (type: FrameType, payload: Uint8Array): void => {
      if (type === "refuse") {
        const { code, message } = decodeRefusal(seals === undefined ? payload : seals.opener.open(type, payload));
        fail(refusalError(code, message));
      } else if (type !== due) fail(noRank(new Error(`it answered with a ${type} frame`)));
      else if (type === "challenge") prove(payload);
      else judge(seals!.opener.open(type, payload));
    };
    const noRank = (error: unknown): LinkFailedError =>
      new LinkFailedError(
        "link-garbage",
        `the process at ${peer.host}:${peer.port} is not rank ${peer.rank}: ${error instanceof Error ? error.message : String(error)}`,
        { cause: error },
      );
    frames.open({
      limit: ({ type }) => {
        if (type !== due && type !== "refuse") return 0;
        return due === "challenge" ? unprovenBytes : requestBytes;
      },
      target: ({ length }) => new Uint8Array(length),
      torn: () => undefined,
      frame: ({ type }, payload) => {
        try {
          take(type, payload);
        } catch (error) {
          fail(noRank(error));
        }
      },
      closed: (error) => {
        if (error instanceof WireError && error.code !== "frame-truncated")
          fail(
            error.code === "protocol-version" ? new LinkRefusedError("link-protocol", error.message) : noRank(error),
          );
        else if (error instanceof PeerIdentityError) fail(error);
        else if ((error as NodeJS.ErrnoException | undefined)?.code === "CERT_REVOKED")
          fail(
            new RevokedPeerError(
              `rank ${identity.rank} does not link with rank ${peer.rank} at ${peer.host}:${peer.port}: its certificate was revoked`,
            ),
          );
        else if (error !== undefined && factory.isIdentityError(error))
          fail(
            new PeerIdentityError(
              `rank ${identity.rank} and rank ${peer.rank} at ${peer.host}:${peer.port} do not trust each other's certificates: ${tlsReasonOf(error)}; use the files of one skein-train certs init on all hosts`,
              { cause: error },
            ),
          );
        else
          fail(
            new Unreachable(error === undefined ? "it closed the connection at once" : tlsReasonOf(error), {
              cause: error,
            }),
          );
      },
    });
    frames.attach(socket, "dialled");
    socket.once(factory.ready, () => {
      if (socket.destroyed) return; // The peer's certificate was revoked meanwhile.
      handshake = new HandshakeDialler({ audience: "data", job: identity.job, key, binding: channelBinding(socket) });
      writeFrame(frames, "hello", handshake.hello());
    });
  });
