import { after, type Eventually, type Transport } from "./transport.ts";

/**
 * Returns a transport with which ranks of one process read each other's memory in place, and reach all other ranks over
 * a network.
 *
 * @param isLocal whether a rank is a thread of this process.
 */
export const hybridTransport = (
  local: Transport,
  network: Transport,
  isLocal: (rank: number) => boolean,
): Transport => {
  const to = (peer: number): Transport => (isLocal(peer) ? local : network);

  const copyFrom = (peer: number, tag: number, target: Uint8Array): Eventually<void> => {
    return after(local.receive(peer, tag, target.byteLength), (bytes) => {
      target.set(bytes);
      local.release(peer);
    });
  };

  return {
    rank: local.rank,
    worldSize: local.worldSize,
    sharesMemoryWith: (peer) => to(peer).sharesMemoryWith(peer),
    describe: (dtype) => network.describe?.(dtype),
    send: (peer, tag, bytes) => to(peer).send(peer, tag, bytes),
    receive: (peer, tag, byteLength) => to(peer).receive(peer, tag, byteLength),
    ...(network.receiveInto !== undefined && {
      receiveInto: (peer, tag, target) =>
        isLocal(peer) ? copyFrom(peer, tag, target) : network.receiveInto!(peer, tag, target),
    }),
    release: (peer) => to(peer).release(peer),
    whenSent: (handle) => to(handle.peer).whenSent(handle),
  };
};
