import { fork } from "node:child_process";
import { heapMessageMemory, wasmMessageMemory } from "../src/message-memory.ts";
import type { Link } from "../src/network/link.ts";
import type { LinkOptions } from "../src/network/link-options.ts";
import { type NetworkWorld, type NetworkWorldOptions, createNetworkWorld } from "../src/network/network-transport.ts";
import { listenByTcp } from "../src/network/tcp.ts";

/** Rank of this process: 0, or 1 if it was started by the other process. */
export const rank: 0 | 1 = process.argv[2] === "rank-1" ? 1 : 0;

const secret = "not secret, because both ends are this benchmark";

const heard: ((message: unknown) => void)[] = [];
const said: unknown[] = [];
const receive = (message: unknown): void => {
  const waiting = heard.shift();
  if (waiting === undefined) said.push(message);
  else waiting(message);
};
const child = rank === 0 ? fork(process.argv[1]!, ["rank-1"]) : undefined;
child?.on("message", receive);
if (child === undefined) process.on("message", receive);

/** Sends a message to the other rank, and returns the message received from that rank. */
export const exchange = async <T>(message: T): Promise<T> => {
  if (child === undefined) process.send!(message);
  else child.send(message as object);
  return (said.length > 0 ? said.shift() : await new Promise<unknown>((resolve) => heard.push(resolve))) as T;
};

export interface PairOptions extends Partial<Omit<NetworkWorldOptions, "rank" | "worldSize" | "links">> {
  readonly link?: Partial<LinkOptions>;
  readonly wrap?: (links: readonly Link[]) => Iterable<Link>;
  readonly sharedMemory?: WebAssembly.Memory;
}

/** Opens a world of the two processes, over TCP on 127.0.0.1. */
export const openPair = async ({
  link,
  wrap = (links) => links,
  sharedMemory,
  ...options
}: PairOptions = {}): Promise<NetworkWorld> => {
  const listener = await listenByTcp({ rank, worldSize: 2, job: "bench", build: "bench", secret, ...link });
  const port = await exchange(listener.port);
  const links = await listener.connect([{ rank: 1 - rank, host: "127.0.0.1", port }]);
  const memory = options.memory ?? (sharedMemory === undefined ? heapMessageMemory() : wasmMessageMemory(sharedMemory));
  return createNetworkWorld({
    rank,
    worldSize: 2,
    lanes: 4,
    timeoutMilliseconds: 60_000,
    ...options,
    memory,
    links: wrap(links),
  });
};

/** Closes the channel between the two processes, so that both can exit. */
export const hangUp = (): void => {
  if (child === undefined) process.disconnect();
};
