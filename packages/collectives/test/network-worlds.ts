import { heapMessageMemory, type MessageMemory } from "../src/message-memory.ts";
import type { Link } from "../src/network/link.ts";
import type { LinkOptions } from "../src/network/link-options.ts";
import { type NetworkWorld, type NetworkWorldOptions, createNetworkWorld } from "../src/network/network-transport.ts";
import { listenByTcp } from "../src/network/tcp.ts";
import { listenByTls, type TlsLinkOptions } from "../src/network/tls.ts";
import { crc32c } from "../src/wire/crc32c.ts";
import type { PeerAddress } from "../src/network/dial.ts";
import type { TlsIdentity } from "../src/security/tls-identity.ts";
import { type Authority, makeAuthority } from "./network-certificates.ts";

export interface TestWorldOptions extends Partial<Omit<NetworkWorldOptions, "rank" | "worldSize" | "links">> {
  readonly over?: "tcp" | "tls";
  readonly link?: Partial<LinkOptions>;
  /** Returns the TLS options of a rank. Default: a certificate that is never renewed. */
  readonly tlsOf?: (rank: number) => Partial<TlsLinkOptions> & Pick<TlsLinkOptions, "tls">;
  /**
   * Returns the address at which rank `from` connects to rank `to`, for example that of a proxy. Default: the listening
   * address.
   */
  readonly route?: (from: number, to: PeerAddress) => PeerAddress | Promise<PeerAddress>;
  readonly wrap?: (links: readonly Link[], rank: number) => Iterable<Link>;
  readonly memoryOf?: (rank: number) => MessageMemory;
}

export const secret = "the secret of all worlds of these tests";

let authority: Authority | undefined;

/** Returns a certificate for `ranks`. All certificates are issued by one authority for all tests of a file. */
export const identityOf = (...ranks: number[]): TlsIdentity =>
  (authority ??= makeAuthority()).issue(ranks.map((rank) => `skein:rank:${rank}`));

/** Opens all ranks of a world in this thread, connected by sockets on 127.0.0.1. */
export const openWorlds = async (
  worldSize: number,
  {
    over = "tcp",
    link = {},
    tlsOf = (rank) => ({ tls: identityOf(rank) }),
    route = (_, to) => to,
    wrap = (links) => links,
    memoryOf = heapMessageMemory,
    ...options
  }: TestWorldOptions = {},
): Promise<readonly NetworkWorld[]> => {
  const ranks = Array.from({ length: worldSize }, (_, rank) => rank);
  const listeners = await Promise.all(
    ranks.map((rank) => {
      const own: LinkOptions = {
        rank,
        worldSize,
        job: "job",
        build: "build",
        secret,
        lanes: options.lanes ?? 4,
        connectMilliseconds: 20_000,
        checksum: crc32c,
        ...link,
      };
      return over === "tcp" ? listenByTcp(own) : listenByTls({ ...own, ...tlsOf(rank) });
    }),
  );
  return Promise.all(
    listeners.map(async (listener, rank) => {
      const peers = await Promise.all(
        listeners.flatMap(({ host, port }, peer) => (peer === rank ? [] : [route(rank, { rank: peer, host, port })])),
      );
      const links = wrap(await listener.connect(peers), rank);
      const { frameBytes, earlyBytes } = link;
      return createNetworkWorld({
        rank,
        worldSize,
        lanes: 4,
        memory: memoryOf(rank),
        timeoutMilliseconds: 20_000,
        ...(frameBytes !== undefined && { frameBytes }),
        ...(earlyBytes !== undefined && { earlyBytes }),
        ...options,
        links,
      });
    }),
  );
};
