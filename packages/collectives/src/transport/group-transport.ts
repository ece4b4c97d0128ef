import { InvariantError } from "@skein/tensor-core";
import { type Eventually, Future, type SendHandle, type Transport } from "./transport.ts";

/** A transport as the ranks of a group see it: peers by their position in `members`, in handles as well. */
export const groupTransport = (transport: Transport, members: readonly number[]): Transport => {
  const memberAt = (position: number): number => {
    const rank = members[position];
    if (rank === undefined) throw new InvariantError(`rank ${position} is not in a group of ${members.length}`);
    return rank;
  };
  const sentTo = (position: number, handle: Eventually<SendHandle>): Eventually<SendHandle> => {
    const own = (given: SendHandle): SendHandle => ({ ...given, peer: position });
    if (handle instanceof Future) return new Future(handle.ready, () => own(handle.take()), handle.expire);
    return handle instanceof Promise ? handle.then(own) : own(handle);
  };
  const { receiveInto } = transport;
  return {
    rank: members.indexOf(transport.rank),
    worldSize: members.length,
    sharesMemoryWith: (peer) => transport.sharesMemoryWith(memberAt(peer)),
    send: (peer, tag, bytes) => sentTo(peer, transport.send(memberAt(peer), tag, bytes)),
    receive: (peer, tag, byteLength) => transport.receive(memberAt(peer), tag, byteLength),
    ...(receiveInto && {
      receiveInto: (peer, tag, target) => receiveInto.call(transport, memberAt(peer), tag, target),
    }),
    release: (peer) => transport.release(memberAt(peer)),
    whenSent: (handle) => transport.whenSent({ ...handle, peer: memberAt(handle.peer) }),
  };
};
