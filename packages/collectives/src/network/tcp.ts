import { connect, createServer } from "node:net";
import type { SocketFactory } from "./socket-factory.ts";
import { type LinkListener, listenForLinks } from "./link-listener.ts";
import type { LinkOptions } from "./link-options.ts";

const tcp: SocketFactory = {
  encrypted: false,
  serve: (accept) => createServer({ noDelay: true }, accept),
  dial: (host, port, _rank, onread) => connect({ host, port, noDelay: true, onread }),
  ready: "connect",
  refuse: () => undefined,
  isIdentityError: () => false,
  close: () => undefined,
};

/**
 * Listens for the peers of a rank by TCP. Default: 127.0.0.1 and a free port.
 *
 * @example
 * const listener = await listenByTcp({ rank, worldSize, job, build });
 * const links = await listener.connect(roster.filter((entry) => entry.rank !== rank));
 * const world = networkWorld({ rank, worldSize, lanes: 4, links, memory, timeoutMilliseconds: 60_000 });
 * @throws InsecureError if the host is not a loopback address, unless `insecure` is set. Use TLS for other hosts.
 */
export const listenByTcp = (options: LinkOptions): Promise<LinkListener> => listenForLinks(tcp, options);
