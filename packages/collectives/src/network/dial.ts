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
  misfitError,
  type Resume,
} from "./handshake.ts";
import { localEnd } from "./socket-ends.ts";
import type { LinkSettings } from "./link-options.ts";

/** Where a peer listens. */
export interface PeerAddress {
  readonly rank: number;
  readonly host: string;
  readonly port: number;
}

const firstRestMilliseconds = 20;
const longestRestMilliseconds = 500;

/** The peer is not there yet, or was busy: worth another try. */
class Unreachable extends Error {}

/** Which socket of a link it is to be, or the one that ranks' own threads read and write. */
type SocketPlace = number | "express";

/** A socket to a peer, and what that said. */
export interface DialledSocket {
  readonly frames: FrameSocket;
  readonly welcome: LinkRequest;
}

// A process that has ended refuses at once and for good; one behind something that is started again refuses for a
// moment.
const refusedMilliseconds = 1500;

/**
 * Connect to a peer, see that it knows the job's secret, prove that we do, and agree on who we are. Tries again, ever
 * more slowly, while nobody listens there.
 *
 * @throws LinkRefusedError, LinkPlaceError, PeerIdentityError when one of us does not belong; LinkFailedError when
 * nobody, or no rank, answers before `deadline`.
 */
export const dialPeer = async (
  peer: PeerAddress,
  index: SocketPlace,
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
          `rank ${settings.identity.rank} cannot reach rank ${peer.rank} at ${peer.host}:${peer.port}: ${error.message}; see that it runs, and that no firewall is between`,
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
 * Connect to a peer again, to go on with a link whose connection broke. Tries until it answers, or nobody has listened
 * there for a while.
 *
 * @param resume asked before each attempt.
 * @throws as `dialPeer`.
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
          `nobody listens at ${peer.host}:${peer.port} any more: its process has ended`,
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
  index: SocketPlace,
  factory: SocketFactory,
  settings: LinkSettings,
  signal: AbortSignal,
  resume?: Resume,
): Promise<DialledSocket> =>
  new Promise((resolve, reject) => {
    const { identity, key, checksum, handsOver, handshakeMilliseconds } = settings;
    const frames = new FrameSocket({ checksum, headerOnly: false }); // who dials sends no data
    const socket = factory.dial(peer.host, peer.port, peer.rank, frames.readInto());
    const fail = (error: Error): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      frames.destroy();
      reject(error);
    };
    const abort = (): void => fail(new Unreachable("the attempt was given up"));
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
        return fail(misfitError(identity.rank, `what listens at ${peer.host}:${peer.port}`, answer));
      }
      seals = answer.proven;
      due = "welcome";
      writeFrame(frames, "proof", answer.proof);
      const place = index === "express" ? { socket: 0, express: true } : { socket: index };
      const request: LinkRequest = {
        ...identity,
        ...place,
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
        `what listens at ${peer.host}:${peer.port} is not rank ${peer.rank}: ${error instanceof Error ? error.message : String(error)}`,
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
          fail(new Unreachable(error === undefined ? "it said goodbye at once" : tlsReasonOf(error), { cause: error }));
      },
    });
    frames.attach(socket, "dialled");
    socket.once(factory.ready, () => {
      if (socket.destroyed) return; // its peer's certificate was revoked meanwhile
      handshake = new HandshakeDialler({ audience: "data", job: identity.job, key, binding: channelBinding(socket) });
      writeFrame(frames, "hello", handshake.hello());
    });
  });
