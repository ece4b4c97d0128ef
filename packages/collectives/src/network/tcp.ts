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
 * Listen for the peers of a rank by TCP, on 127.0.0.1 and a free port unless told otherwise.
 *
 * @example
 * const listener = await listenByTcp({ rank, worldSize, job, build });
 * const links = await listener.connect(roster.filter((entry) => entry.rank !== rank));
 * const world = networkWorld({ rank, worldSize, lanes: 4, links, memory, timeoutMilliseconds: 60_000 });
 * @throws InsecureError off loopback, unless `insecure` is said: TLS is for that.
 */
export const listenByTcp = (options: LinkOptions): Promise<LinkListener> => listenForLinks(tcp, options);
