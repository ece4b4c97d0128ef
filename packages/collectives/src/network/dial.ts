import { PeerIdentityError } from "../security/errors.ts";
import { WireError } from "../wire/errors.ts";
import type { Carrier } from "./carrier.ts";
import { LinkFailedError, LinkRefusedError } from "./errors.ts";
import { FrameSocket } from "./frame-socket.ts";
import { decodeHello, decodeRefusal, encodeJson, type Hello, judgeHello } from "./handshake.ts";
import type { LinkSettings } from "./link-options.ts";

/** Where a peer listens. */
export interface PeerAddress {
  readonly rank: number;
  readonly host: string;
  readonly port: number;
}

const longestAnswer = 32_768;
const firstRestMilliseconds = 20;
const longestRestMilliseconds = 500;

/** The peer is not there yet, or was busy: worth another try. */
class Unreachable extends Error {}

/**
 * Connect to a peer and agree with it on who we are. Tries again, ever more slowly, while nobody listens there.
 *
 * @throws LinkRefusedError, PeerIdentityError when one of us does not belong; LinkFailedError when nobody, or no rank, answers before `deadline`.
 */
export const dialPeer = async (
  peer: PeerAddress,
  index: number,
  carrier: Carrier,
  settings: LinkSettings,
  deadline: number,
  signal: AbortSignal,
): Promise<FrameSocket> => {
  for (let rest = firstRestMilliseconds; ; rest = Math.min(2 * rest, longestRestMilliseconds)) {
    try {
      return await dialOnce(peer, index, carrier, settings, signal);
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      if (signal.aborted || performance.now() + rest > deadline)
        throw new LinkFailedError(
          "link-unreachable",
          `rank ${settings.identity.rank} cannot reach rank ${peer.rank} at ${peer.host}:${peer.port}: ${error.message}; see that it runs, and that no firewall is between`,
          { cause: error },
        );
    }
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, rest);
      signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
    });
  }
};

const dialOnce = (peer: PeerAddress, index: number, carrier: Carrier, settings: LinkSettings, signal: AbortSignal): Promise<FrameSocket> =>
  new Promise((resolve, reject) => {
    const { identity, checksum, headerOnly, handshakeMilliseconds, admit } = settings;
    const frames = new FrameSocket({ checksum, headerOnly });
    const socket = carrier.dial(peer.host, peer.port, peer.rank, frames.readInto());
    const fail = (error: Error): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      frames.destroy();
      reject(error);
    };
    const abort = (): void => fail(new Unreachable("the attempt was given up"));
    const timer = setTimeout(() => fail(new Unreachable(`no answer for ${handshakeMilliseconds} ms`)), handshakeMilliseconds);
    signal.addEventListener("abort", abort, { once: true });

    const judge = async (payload: Uint8Array): Promise<void> => {
      const hello = decodeHello(payload);
      const wrong = judgeHello(identity, hello);
      if (wrong !== undefined) return fail(wrong);
      if (hello.rank !== peer.rank)
        return fail(
          new LinkRefusedError(
            "link-rank",
            `rank ${identity.rank} found rank ${hello.rank} at ${peer.host}:${peer.port}, where rank ${peer.rank} should be; check the roster`,
          ),
        );
      const reason = await admit(hello);
      if (reason !== undefined)
        return fail(
          new LinkRefusedError(
            "link-token",
            `rank ${identity.rank} does not link with rank ${hello.rank}: ${reason}; give all ranks the job's secret`,
          ),
        );
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      resolve(frames);
    };
    const noRank = (error: unknown): LinkFailedError =>
      new LinkFailedError(
        "link-garbage",
        `what listens at ${peer.host}:${peer.port} is not rank ${peer.rank}: ${error instanceof Error ? error.message : String(error)}`,
        { cause: error },
      );
    frames.open({
      limit: ({ type }) => (type === "welcome" || type === "refuse" ? longestAnswer : 0),
      target: ({ length }) => new Uint8Array(length),
      frame: ({ type }, payload) => {
        frames.hold();
        if (type === "welcome") judge(payload).catch((error: unknown) => fail(noRank(error)));
        else if (type === "refuse") {
          const { code, message } = decodeRefusal(payload);
          fail(new LinkRefusedError(code, message));
        } else fail(noRank(new Error(`it answered with a ${type} frame`)));
      },
      closed: (error) => {
        if (error instanceof WireError)
          fail(error.code === "protocol-version" ? new LinkRefusedError("link-protocol", error.message) : noRank(error));
        else if (error instanceof PeerIdentityError) fail(error);
        else if (error !== undefined && carrier.isIdentityError(error))
          fail(
            new PeerIdentityError(
              `rank ${identity.rank} and rank ${peer.rank} at ${peer.host}:${peer.port} do not trust each other's certificates: ${error.message}; use the files of one skein-train certs init on all hosts`,
              { cause: error },
            ),
          );
        else fail(new Unreachable(error?.message ?? "it said goodbye at once", { cause: error }));
      },
    });
    frames.attach(socket, "dialled");
    socket.once(carrier.ready, () => {
      const hello: Hello = { ...identity, to: peer.rank, socket: index };
      frames.write({ type: "hello", flags: 0, stream: 0, sequence: 0, tag: 0, payload: encodeJson(hello) });
    });
  });
