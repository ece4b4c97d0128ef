import { InvariantError } from "@skein/tensor-core";
import { after, type Transport } from "./transport.ts";

/**
 * Returns a transport for a group. Peers, including the peers in send handles, are given as indices into `members`
 * instead of as ranks of `transport`.
 */
export const groupTransport = (transport: Transport, members: readonly number[]): Transport => {
  const memberAt = (position: number): number => {
    const rank = members[position];
    if (rank === undefined) throw new InvariantError(`rank ${position} is not in a group of ${members.length}`);
    return rank;
  };
  const { receiveInto } = transport;
  return {
    rank: members.indexOf(transport.rank),
    worldSize: members.length,
    sharesMemoryWith: (peer) => transport.sharesMemoryWith(memberAt(peer)),
    send: (peer, tag, bytes) => after(transport.send(memberAt(peer), tag, bytes), ({ count }) => ({ peer, count })),
    receive: (peer, tag, byteLength) => transport.receive(memberAt(peer), tag, byteLength),
    ...(receiveInto && {
      receiveInto: (peer, tag, target) => receiveInto.call(transport, memberAt(peer), tag, target),
    }),
    release: (peer) => transport.release(memberAt(peer)),
    whenSent: (handle) => transport.whenSent({ ...handle, peer: memberAt(handle.peer) }),
  };
};
