import { type DType, InvariantError } from "@skein/tensor-core";
import type { MessageMemory } from "../message-memory.ts";
import type { SendHandle, Transport } from "../transport/transport.ts";
import type { Route } from "./route.ts";
import type { SendQueue } from "./send-queue.ts";

/** A transport that returns a promise if a result is not available immediately. */
export interface NetworkTransport extends Transport {
  send(peer: number, tag: number, bytes: Uint8Array): SendHandle;
  receive(peer: number, tag: number, byteLength: number): Uint8Array | Promise<Uint8Array>;
  receiveInto(peer: number, tag: number, target: Uint8Array): void | Promise<void>;
  whenSent(handle: SendHandle): void | Promise<void>;
}

/** Dependencies of a lane's transport. */
export interface LaneTransportOptions {
  readonly rank: number;
  readonly worldSize: number;
  readonly memory: MessageMemory;
  readonly now: () => number;
  /** Returns the route and send queue of a peer. Throws if there is no link to the peer. */
  readonly routeTo: (peer: number) => { readonly route: Route; readonly queue: SendQueue };
  /** Throws if the world has failed or is closed. */
  readonly requireUsable: (route: Route) => void;
  /** Called when a wait for a peer begins. */
  readonly waiting: (route: Route) => void;
  /** Called when a thread begins to wait for the memory of a pending send. */
  readonly hurry: (peer: number) => void;
  /** Runs a call that may detect invalid bytes of a peer. If the call throws, the world fails. */
  readonly attempt: <T>(route: Route, call: () => T) => T;
}

/**
 * Creates the transport of one lane. The transport has no buffers: messages are stored in their targets or in message
 * memory.
 */
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
}: LaneTransportOptions): NetworkTransport => {
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
      const early = attempt(route, () => route.incoming.takeEarly(tag, byteLength));
      const target = early ?? memory.take(byteLength);
      route.borrowed.push(target);
      const waited = early === undefined ? receiveInto(route, target) : undefined;
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
