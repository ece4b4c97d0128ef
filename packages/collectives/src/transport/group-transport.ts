import { InvariantError } from "@skein/tensor-core";
import { type Eventually, Later, type Loan, type Transport } from "./transport.ts";

/** A transport as the ranks of a group see it: peers by their position in `members`, in loans as well. */
export const groupTransport = (transport: Transport, members: readonly number[]): Transport => {
  const memberAt = (position: number): number => {
    const rank = members[position];
    if (rank === undefined) throw new InvariantError(`rank ${position} is not in a group of ${members.length}`);
    return rank;
  };
  const lentTo = (position: number, loan: Eventually<Loan>): Eventually<Loan> => {
    const own = (given: Loan): Loan => ({ ...given, peer: position });
    if (loan instanceof Later) return new Later(loan.ready, () => own(loan.take()), loan.expire);
    return loan instanceof Promise ? loan.then(own) : own(loan);
  };
  const { receiveInto } = transport;
  return {
    rank: members.indexOf(transport.rank),
    worldSize: members.length,
    sharesMemoryWith: (peer) => transport.sharesMemoryWith(memberAt(peer)),
    send: (peer, tag, bytes) => lentTo(peer, transport.send(memberAt(peer), tag, bytes)),
    receive: (peer, tag, byteLength) => transport.receive(memberAt(peer), tag, byteLength),
    ...(receiveInto && { receiveInto: (peer, tag, target) => receiveInto.call(transport, memberAt(peer), tag, target) }),
    release: (peer) => transport.release(memberAt(peer)),
    whenReturned: (loan) => transport.whenReturned({ ...loan, peer: memberAt(loan.peer) }),
  };
};
