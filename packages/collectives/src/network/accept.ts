import type { Socket } from "node:net";
import { WireError } from "../wire/errors.ts";
import type { Carrier } from "./carrier.ts";
import { LinkFailedError, LinkRefusedError } from "./errors.ts";
import { FrameSocket } from "./frame-socket.ts";
import { decodeHello, encodeJson, type Hello, judgeHello } from "./handshake.ts";
import type { LinkSettings } from "./link-options.ts";

/** A socket whose other end has proven to be a peer. */
export interface AcceptedSocket {
  readonly hello: Hello;
  readonly frames: FrameSocket;
}

const longestHello = 32_768;

/**
 * Find out who has dialled. A peer gets a welcome; who does not belong here gets the reason, and is gone within a second; who says
 * nothing sensible is dropped.
 *
 * @param take keeps the socket, unless the same one is there already.
 * @returns what ends it before that.
 */
export const acceptSocket = (
  socket: Socket,
  carrier: Carrier,
  settings: LinkSettings,
  take: (accepted: AcceptedSocket) => boolean,
): (() => void) => {
  const { identity, checksum, headerOnly, handshakeMilliseconds, admit, onRefused } = settings;
  const frames = new FrameSocket({ checksum, headerOnly });
  const remote = `${socket.remoteAddress ?? "unknown"}:${socket.remotePort ?? 0}`;
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
  const refuse = (error: LinkRefusedError): void => {
    if (!settle()) return;
    const payload = encodeJson({ code: error.code, message: error.message });
    frames.write({ type: "refuse", flags: 0, stream: 0, sequence: 0, tag: 0, payload });
    frames.leave();
    onRefused({ remote, error });
  };
  const judge = async (payload: Uint8Array): Promise<void> => {
    const hello = decodeHello(payload);
    const wrong = judgeHello(identity, hello);
    if (wrong !== undefined) return refuse(wrong);
    const unproven = carrier.refuse(socket, hello.rank);
    if (unproven !== undefined)
      return refuse(new LinkRefusedError("link-identity", `rank ${identity.rank} does not link with rank ${hello.rank}: ${unproven}`));
    const reason = await admit(hello);
    if (reason !== undefined)
      return refuse(
        new LinkRefusedError(
          "link-token",
          `rank ${identity.rank} does not link with rank ${hello.rank}: ${reason}; give all ranks the job's secret`,
        ),
      );
    if (settled) return;
    if (!take({ hello, frames }))
      return refuse(
        new LinkRefusedError(
          "link-rank-taken",
          `rank ${identity.rank} has linked with a rank ${hello.rank} already, and ${remote} says that it is rank ${hello.rank} too; start each rank once`,
        ),
      );
    settle();
    const welcome: Hello = { ...identity, to: hello.rank, socket: hello.socket };
    frames.write({ type: "welcome", flags: 0, stream: 0, sequence: 0, tag: 0, payload: encodeJson(welcome) });
  };

  const timer = setTimeout(
    () =>
      drop(
        new LinkFailedError(
          "link-timeout",
          `${remote} said nothing for ${handshakeMilliseconds} ms after it connected to rank ${identity.rank}`,
        ),
      ),
    handshakeMilliseconds,
  );
  timer.unref();
  const garbage = (error: unknown): LinkFailedError =>
    new LinkFailedError("link-garbage", `${remote} is no rank: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  frames.open({
    limit: ({ type }) => (type === "hello" ? longestHello : 0),
    target: ({ length }) => new Uint8Array(length),
    frame: ({ type }, payload) => {
      if (type !== "hello") return drop(garbage(new Error(`it began with a ${type} frame`)));
      frames.hold();
      judge(payload).catch((error: unknown) => drop(garbage(error)));
    },
    closed: (error) => {
      if (error instanceof WireError && error.code === "protocol-version") refuse(new LinkRefusedError("link-protocol", error.message));
      else drop(garbage(error ?? new Error("it left before it had said who it is")));
    },
  });
  frames.attach(socket, "accepted");
  return () => {
    if (settle()) frames.destroy();
  };
};
