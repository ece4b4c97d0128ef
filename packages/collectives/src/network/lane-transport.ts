import { type DType, InvariantError } from "@skein/tensor-core";
import type { MessageMemory } from "../message-memory.ts";
import type { SendHandle, Transport } from "../transport/transport.ts";
import type { Route } from "./route.ts";
import type { SendQueue } from "./send-queue.ts";

/** A transport whose answers come from the event loop, if not at once. */
export interface NetworkTransport extends Transport {
  send(peer: number, tag: number, bytes: Uint8Array): SendHandle;
  receive(peer: number, tag: number, byteLength: number): Uint8Array | Promise<Uint8Array>;
  receiveInto(peer: number, tag: number, target: Uint8Array): void | Promise<void>;
  whenSent(handle: SendHandle): void | Promise<void>;
}

/** What the transport of a lane needs of its world. */
export interface LaneParts {
  readonly rank: number;
  readonly worldSize: number;
  readonly memory: MessageMemory;
  readonly now: () => number;
  /** Throws when there is none. */
  readonly routeTo: (peer: number) => { readonly route: Route; readonly queue: SendQueue };
  /** Throws when the world has failed or is closed. */
  readonly requireUsable: (route: Route) => void;
  /** Somebody begins to wait for a peer. */
  readonly waiting: (route: Route) => void;
  /** Memory that was lent to a peer is waited for. */
  readonly hurry: (peer: number) => void;
  /** Call what may find that a peer's bytes are wrong: then the world fails. */
  readonly attempt: <T>(route: Route, call: () => T) => T;
}

/** The transport of one lane. Bytes of its own it has none: messages lie in their targets, or in message memory. */
export const laneTransport = ({
  rank,
  worldSize,
  memory,
  now,
  routeTo,
  requireUsable,
  waiting,
  hurry,
  attempt,
}: LaneParts): NetworkTransport => {
  const begin = (peer: number, tag: number): { readonly route: Route; readonly queue: SendQueue } => {
    const found = routeTo(peer);
    found.route.tag = tag;
    found.route.progress = now();
    requireUsable(found.route);
    return found;
  };
  const receiveInto = (route: Route, target: Uint8Array): void | Promise<void> =>
    attempt(route, () => route.receive(target, () => waiting(route)));
  let dtype: DType | undefined;
  return {
    rank,
    worldSize,
    sharesMemoryWith: () => false,
    describe: (described) => {
      dtype = described;
    },
    send: (peer, tag, bytes) => {
      const { route, queue } = begin(peer, tag);
      return { peer, count: route.send(queue, bytes, now, dtype) };
    },
    receive: (peer, tag, byteLength) => {
      const { route } = begin(peer, tag);
      const kept = attempt(route, () => route.incoming.takeKept(tag, byteLength));
      const target = kept ?? memory.take(byteLength);
      route.borrowed.push(target);
      const waited = kept === undefined ? receiveInto(route, target) : undefined;
      return waited === undefined ? target : waited.then(() => target);
    },
    receiveInto: (peer, tag, target) => receiveInto(begin(peer, tag).route, target),
    release: (peer) => {
      const bytes = routeTo(peer).route.borrowed.shift();
      if (bytes === undefined)
        throw new InvariantError(`rank ${rank} released a message of rank ${peer} that it did not hold`);
      memory.give(bytes);
    },
    whenSent: ({ peer, count }) => {
      const { route } = routeTo(peer);
      if (route.isSent(count)) return;
      requireUsable(route);
      route.progress = now();
      return route.whenSent(count, () => {
        waiting(route);
        hurry(peer);
      });
    },
  };
};
