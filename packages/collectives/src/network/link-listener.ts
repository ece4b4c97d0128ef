import type { AddressInfo, Socket } from "node:net";
import { formatRanks } from "../rendezvous/ranks.ts";
import { guardServer } from "../security/guard-server.ts";
import { jobKey } from "../security/handshake.ts";
import { requireSecure } from "../security/loopback.ts";
import { checkSecret } from "../security/secret.ts";
import { UnprovenConnections } from "../security/unproven-connections.ts";
import { crc32cOf } from "../wire/folded-crc32c.ts";
import { acceptSocket } from "./accept.ts";
import type { Carrier } from "./carrier.ts";
import { dialPeer, type PeerAddress } from "./dial.ts";
import { LinkFailedError } from "./errors.ts";
import { defaultFlow } from "./flow.ts";
import type { FrameSocket } from "./frame-socket.ts";
import type { Link } from "./link.ts";
import { linkDefaults, type LinkOptions, type LinkSettings, type Refusal } from "./link-options.ts";
import { SocketLink } from "./socket-link.ts";

/** A rank's open door, before it knows where the others are. */
export interface LinkListener {
  readonly host: string;
  readonly port: number;
  /**
   * Link with each of `peers`, which listen too and do the same. Then the door is shut.
   *
   * @throws LinkRefusedError, PeerIdentityError when a peer is not of this world; LinkFailedError when some do not come in time.
   */
  connect(peers: readonly PeerAddress[]): Promise<readonly Link[]>;
  /** Shut the door, and give up what is not linked yet. */
  close(): Promise<void>;
}

// Strangers may hold that many sockets beside those of the peers; one that comes on top ends another.
const strangerSockets = 1024;

const complete = (options: LinkOptions, carrier: Carrier, onRefused: (refusal: Refusal) => void): LinkSettings => {
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
    headerOnly: (options.sums ?? (carrier.encrypted ? "header" : "payload")) === "header",
    key: jobKey(secret, job),
    identity: { rank, worldSize, job, build, lanes, socketsPerPair, frameBytes, earlyBytes },
    onRefused,
  };
};

/**
 * Listen for the peers of a rank.
 *
 * @throws InsecureError off loopback without encryption, unless `insecure` is said.
 */
export const listenForLinks = async (carrier: Carrier, options: LinkOptions): Promise<LinkListener> => {
  let lastRefusal: Refusal | undefined;
  const settings = complete(options, carrier, (refusal) => {
    lastRefusal = refusal;
    options.onRefused?.(refusal);
  });
  const { rank, worldSize, socketsPerPair } = settings.identity;
  requireSecure(`rank ${rank} would listen`, settings.host, { encrypted: carrier.encrypted, insecure: settings.insecure });

  const accepted = new Map<string, FrameSocket>();
  const strangers = new Set<() => void>();
  const key = (peer: number, socket: number): string => `${peer}/${socket}`;
  let whenAccepted: () => void = () => undefined;
  const expected = worldSize * socketsPerPair;
  const accept = (socket: Socket): void => {
    const place = placeOf(socket);
    if (place === undefined) return void socket.destroy();
    const end = acceptSocket(socket, carrier, settings, {
      proven: place.leave,
      take: ({ request, frames }) => {
        const seat = key(request.rank, request.socket);
        if (accepted.get(seat)?.closed === false) return false;
        accepted.set(seat, frames);
        queueMicrotask(() => whenAccepted()); // after the welcome is written
        return true;
      },
    });
    strangers.add(end);
    socket.once("close", () => strangers.delete(end));
  };
  const server = carrier.serve(accept, (error, remote) => settings.onRefused({ remote, error }));
  const placeOf = guardServer(server, new UnprovenConnections({ places: expected + strangerSockets, quota: expected }));
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
    for (const end of strangers) end();
    if (server.listening) await new Promise<void>((resolve) => (server.close(), resolve()));
  };
  const close = async (): Promise<void> => {
    abort.abort();
    for (const socket of accepted.values()) socket.destroy();
    await shut();
  };

  const sockets = Array.from({ length: socketsPerPair }, (_, index) => index);
  const missing = (peers: readonly PeerAddress[]): number[] =>
    peers.map((peer) => peer.rank).filter((peer) => sockets.some((index) => accepted.get(key(peer, index))?.closed !== false));
  const allAccepted = (peers: readonly PeerAddress[], deadline: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        if (missing(peers).length > 0) return;
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        const hint = lastRefusal === undefined ? "" : ` (last refused: ${lastRefusal.remote}, ${lastRefusal.error.message})`;
        reject(
          new LinkFailedError(
            "link-timeout",
            `${formatRanks(missing(peers))} did not link with rank ${rank} within ${settings.connectMilliseconds} ms${hint}; see that they run, and that no firewall is between`,
          ),
        );
      }, deadline - performance.now());
      const giveUp = (): void => {
        clearTimeout(timer);
        reject(new LinkFailedError("link-closed", `rank ${rank} closed its door before ${formatRanks(missing(peers))} had linked with it`));
      };
      abort.signal.addEventListener("abort", giveUp, { once: true });
      whenAccepted = check;
      check();
    });

  return {
    host: settings.host,
    port,
    close,
    connect: async (peers) => {
      const deadline = performance.now() + settings.connectMilliseconds;
      const dialled: FrameSocket[][] = peers.map(() => []);
      try {
        await Promise.all([
          allAccepted(peers, deadline),
          ...peers.flatMap((peer, i) =>
            sockets.map(async (index) => {
              const frames = await dialPeer(peer, index, carrier, settings, deadline, abort.signal);
              if (abort.signal.aborted) frames.destroy(); // another one failed meanwhile
              dialled[i]![index] = frames;
            }),
          ),
        ]);
      } catch (error) {
        for (const socket of dialled.flat()) socket.destroy();
        await close();
        throw error;
      }
      await shut();
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
