import type { AddressInfo, Socket } from "node:net";
import { formatRanks } from "../ranks.ts";
import { guardServer } from "../security/guard-server.ts";
import { jobKey } from "../security/handshake.ts";
import { requireSecure } from "../security/loopback.ts";
import { checkSecret } from "../security/secret.ts";
import { UnprovenConnections } from "../security/unproven-connections.ts";
import { crc32cOf } from "../wire/folded-crc32c.ts";
import { type AcceptedSocket, acceptSocket, type Taken } from "./accept.ts";
import type { SocketFactory } from "./socket-factory.ts";
import { dialPeer, type PeerAddress, redialPeer } from "./dial.ts";
import type { ExpressEnd } from "../control-block/world-connection.ts";
import type { FrameSocket } from "./frame-socket.ts";
import { LinkFailedError, LinkBusyError } from "./errors.ts";
import { defaultFlow } from "./flow.ts";
import type { Resume } from "./handshake.ts";
import { type Redial, ResumableSocket } from "./resumable-socket.ts";
import type { Link } from "./link.ts";
import { linkDefaults, type LinkOptions, type LinkSettings, type Refusal } from "./link-options.ts";
import { SocketLink } from "./socket-link.ts";

/** A connection to a peer for the rank's compute thread. Its file descriptor is valid until `close`. */
export interface ExpressSocket extends ExpressEnd {
  close(): void;
}

/** Listening socket of a rank, opened before the addresses of other ranks are known. */
export interface LinkListener {
  readonly host: string;
  readonly port: number;
  /**
   * Connects to each of `peers`, which must also listen and connect. Keeps listening for peers whose connection breaks,
   * until all links have ended.
   *
   * @throws LinkRefusedError, LinkBusyError, PeerIdentityError if a peer does not belong to this world; LinkFailedError
   * if peers do not connect in time.
   */
  connect(peers: readonly PeerAddress[]): Promise<readonly Link[]>;
  /**
   * Connections that the rank's compute thread may read and write, available after `connect`. The caller must close the
   * connections.
   */
  readonly expressSockets: readonly ExpressSocket[];
  /** Stops listening, and closes connections that do not belong to a link yet. */
  close(): Promise<void>;
}

// Maximum number of unauthenticated sockets, in addition to one socket per expected connection of a peer. Each further
// socket closes an existing socket.
const unauthenticatedSockets = 1024;

const complete = (
  options: LinkOptions,
  factory: SocketFactory,
  onRefused: (refusal: Refusal) => void,
): LinkSettings => {
  const { secret, ...rest } = options;
  checkSecret(secret);
  const { rank, worldSize, job, build } = rest;
  const merged = {
    ...linkDefaults,
    ...defaultFlow,
    insecure: false,
    ...rest,
    checksum: options.checksum ?? crc32cOf(),
  };
  const { lanes, socketsPerPair, frameBytes, earlyBytes } = merged;
  return {
    ...merged,
    sums: options.sums ?? (factory.encrypted ? "header" : "payload"),
    key: jobKey(secret, job),
    identity: {
      rank,
      worldSize,
      job,
      build,
      session: crypto.randomUUID(),
      lanes,
      socketsPerPair,
      frameBytes,
      earlyBytes,
    },
    onRefused,
  };
};

/**
 * Listens for the peers of a rank.
 *
 * @throws InsecureError if the host is not a loopback address and connections are not encrypted, unless `insecure` is
 * set.
 */
export const listenForLinks = async (factory: SocketFactory, options: LinkOptions): Promise<LinkListener> => {
  let lastRefusal: Refusal | undefined;
  const settings = complete(options, factory, (refusal) => {
    lastRefusal = refusal;
    options.onRefused?.(refusal);
  });
  const { rank, worldSize, socketsPerPair } = settings.identity;
  requireSecure(`rank ${rank} would listen`, settings.host, {
    encrypted: factory.encrypted,
    insecure: settings.insecure,
  });

  const accepted = new Map<string, ResumableSocket>();
  const expressSockets = new Map<number, ExpressSocket>();
  /**
   * Peers that will dial an express socket to this rank, known from the handshake of their first socket. Their rank is
   * lower than this rank.
   */
  const expressPeers = new Set<number>();
  let connected = false;
  const addExpressSocket = (peer: number, frames: FrameSocket, headerOnly: boolean): void => {
    expressSockets.get(peer)?.close();
    expressSockets.set(peer, { peer, fd: frames.detach(), headerOnly, close: () => frames.destroy() });
  };
  const unauthenticated = new Set<() => void>();
  const key = (peer: number, socket: number): string => `${peer}/${socket}`;
  let whenAccepted: () => void = () => undefined;
  const expected = worldSize * socketsPerPair;
  const take = ({ request, frames, remote, direct }: AcceptedSocket): Taken => {
    const socketKey = key(request.rank, request.socket);
    const known = accepted.get(socketKey);
    const refused = (code: "link-rank-taken" | "link-session", what: string): Taken => ({
      refused: new LinkBusyError(code, what),
    });
    if (request.express === true) {
      if (!expressPeers.has(request.rank) || known?.session !== request.session)
        return refused(
          "link-session",
          `rank ${rank} has no link with rank ${request.rank} for this express connection`,
        );
      if (connected)
        return refused(
          "link-rank-taken",
          `the thread of rank ${rank} already has a connection to rank ${request.rank}; start each rank once`,
        );
      return {
        session: request.session,
        received: undefined,
        answered: () => {
          addExpressSocket(request.rank, frames, frames.headerOnly);
          whenAccepted();
        },
      };
    }
    if (request.resume !== undefined) {
      const { session, received } = request.resume;
      if (session !== settings.identity.session || known?.mayResume(request.session, received) !== true)
        return refused(
          "link-session",
          `rank ${rank} has no link with rank ${request.rank} to continue: one of them was restarted, or has given up the other; the job continues from its last checkpoint`,
        );
      return { session: request.session, received: known.replace(), answered: () => known.resume(frames, received) };
    }
    // The peer may not have received the welcome, and starts again.
    if (known?.isUntouched(request.session) === true)
      return {
        session: request.session,
        received: undefined,
        answered: () => (known.replace(), known.resume(frames, 0)),
      };
    if (known?.ended === false)
      return refused(
        "link-rank-taken",
        `rank ${rank} already has a link with a rank ${request.rank}, and ${remote} claims to be rank ${request.rank} too; start each rank once`,
      );
    if (direct && settings.handsOver && request.handsOver === true && request.rank < rank)
      expressPeers.add(request.rank);
    accepted.set(socketKey, new ResumableSocket(frames, { session: request.session, direct, width: socketsPerPair }));
    return { session: request.session, received: undefined, answered: () => whenAccepted() };
  };
  const accept = (socket: Socket): void => {
    const slot = slotOf(socket);
    if (slot === undefined) return void socket.destroy();
    const end = acceptSocket(socket, factory, settings, { proven: slot.leave, take });
    unauthenticated.add(end);
    socket.once("close", () => unauthenticated.delete(end));
  };
  const server = factory.serve(accept, (error, remote) => settings.onRefused({ remote, error }));
  const slotOf = guardServer(
    server,
    new UnprovenConnections({ slots: expected + unauthenticatedSockets, quota: expected }),
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(settings.port, settings.host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const { port } = server.address() as AddressInfo;

  const abort = new AbortController();
  const shut = async (): Promise<void> => {
    for (const end of unauthenticated) end();
    factory.close();
    if (server.listening) await new Promise<void>((resolve) => (server.close(), resolve()));
  };
  const close = async (): Promise<void> => {
    abort.abort();
    for (const socket of accepted.values()) socket.destroy();
    for (const socket of expressSockets.values()) socket.close();
    await shut();
  };
  const callExpress = async (peer: PeerAddress, deadline: number): Promise<void> => {
    const { frames } = await dialPeer(peer, "express", factory, settings, deadline, abort.signal);
    // The other end has detected a direct connection, so both ends use the same checksum coverage.
    addExpressSocket(peer.rank, frames, settings.sums !== "payload");
    if (abort.signal.aborted) frames.destroy();
  };

  const redialBy =
    (peer: PeerAddress, index: number): Redial =>
    async (socket, signal) => {
      const both = AbortSignal.any([signal, abort.signal]);
      const resume = (): Resume => ({ session: socket.session, received: socket.received });
      const { frames, welcome } = await redialPeer(peer, index, factory, settings, resume, both);
      const peerHas = welcome.resume?.received;
      if (both.aborted || peerHas === undefined || !socket.mayResume(welcome.session, peerHas)) {
        frames.destroy();
        throw new LinkFailedError("link-closed", `rank ${peer.rank} answered, but does not continue the link`);
      }
      socket.resume(frames, peerHas);
    };

  const sockets = Array.from({ length: socketsPerPair }, (_, index) => index);
  const missing = (peers: readonly PeerAddress[]): number[] =>
    peers
      .map((peer) => peer.rank)
      .filter(
        (peer) =>
          sockets.some((index) => accepted.get(key(peer, index))?.ended !== false) ||
          (expressPeers.has(peer) && !expressSockets.has(peer)),
      );
  const allAccepted = (peers: readonly PeerAddress[], deadline: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        if (missing(peers).length > 0) return;
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        const hint =
          lastRefusal === undefined ? "" : ` (last refused: ${lastRefusal.remote}, ${lastRefusal.error.message})`;
        reject(
          new LinkFailedError(
            "link-timeout",
            `${formatRanks(missing(peers))} did not link with rank ${rank} within ${settings.connectMilliseconds} ms${hint}; check that they run, and that no firewall blocks the connection`,
          ),
        );
      }, deadline - performance.now());
      const giveUp = (): void => {
        clearTimeout(timer);
        reject(
          new LinkFailedError(
            "link-closed",
            `rank ${rank} stopped listening before ${formatRanks(missing(peers))} had linked with it`,
          ),
        );
      };
      abort.signal.addEventListener("abort", giveUp, { once: true });
      whenAccepted = check;
      check();
    });

  return {
    host: settings.host,
    port,
    close,
    get expressSockets() {
      return [...expressSockets.values()];
    },
    connect: async (peers) => {
      const deadline = performance.now() + settings.connectMilliseconds;
      const dialled: ResumableSocket[][] = peers.map(() => []);
      try {
        await Promise.all([
          allAccepted(peers, deadline),
          ...peers.flatMap((peer, i) =>
            sockets.map(async (index) => {
              const { frames, welcome } = await dialPeer(peer, index, factory, settings, deadline, abort.signal);
              const socket = new ResumableSocket(frames, {
                session: welcome.session,
                direct: welcome.direct === true,
                width: socketsPerPair,
                redial: redialBy(peer, index),
              });
              if (abort.signal.aborted) socket.destroy(); // Another socket failed in the meantime.
              dialled[i]![index] = socket;
              const agreed = welcome.direct === true && welcome.handsOver === true && settings.handsOver;
              if (agreed && index === 0 && rank < peer.rank) await callExpress(peer, deadline);
            }),
          ),
        ]);
      } catch (error) {
        for (const socket of dialled.flat()) socket.destroy();
        await close();
        throw error;
      }
      connected = true; // From now on the descriptors may be in use.
      server.unref();
      const open = new Set([...accepted.values(), ...dialled.flat()]);
      if (open.size === 0) await shut();
      for (const socket of open)
        socket.onEnd(() => {
          open.delete(socket);
          if (open.size === 0) void shut();
        });
      return peers.map(
        ({ rank: peer }, i) =>
          new SocketLink(
            peer,
            sockets.map((index) => accepted.get(key(peer, index))!),
            dialled[i]!,
          ),
      );
    },
  };
};
