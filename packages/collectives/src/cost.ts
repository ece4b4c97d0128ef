import { type CostParameters, type Load, type ScheduleCost, separateHosts } from "./schedule.ts";

/** One message to a peer. */
export interface Message {
  readonly peer: number;
  readonly bytes: number;
  /** Whether the receiver reads the message as an operand of a sum. Default: false. */
  readonly summed?: boolean;
}

/** A round of messages, or several equal rounds in sequence. */
export interface MessageRound {
  /** Number of equal rounds in sequence. Default: 1. */
  readonly times?: number;
  readonly sends: (rank: number) => readonly Message[];
}

/** Number of messages, or number of bytes, that each rank or host sends and receives. */
class Ledger {
  readonly sent: Float64Array;
  readonly received: Float64Array;

  constructor(length: number) {
    this.sent = new Float64Array(length);
    this.received = new Float64Array(length);
  }

  add(from: number, to: number, amount: number): void {
    this.sent[from]! += amount;
    this.received[to]! += amount;
  }

  addTimes(other: Ledger, times: number): void {
    for (let i = 0; i < this.sent.length; i++) {
      this.sent[i]! += times * other.sent[i]!;
      this.received[i]! += times * other.received[i]!;
    }
  }

  /**
   * Returns the largest total, sent or received, of any rank or host. Links are full duplex, so only the larger
   * direction counts.
   */
  most(): number {
    let most = 0;
    for (let i = 0; i < this.sent.length; i++) most = Math.max(most, this.sent[i]!, this.received[i]!);
    return most;
  }
}

class Ledgers {
  readonly messagesWithin: Ledger;
  readonly bytesWithin: Ledger;
  readonly messagesAcross: Ledger;
  readonly bytesAcross: Ledger;
  readonly messages: Ledger;
  readonly bytes: Ledger;
  readonly reduced: Ledger;

  constructor(ranks: number, hosts: number) {
    this.messagesWithin = new Ledger(ranks);
    this.bytesWithin = new Ledger(ranks);
    this.messagesAcross = new Ledger(ranks);
    this.bytesAcross = new Ledger(hosts);
    this.messages = new Ledger(ranks);
    this.bytes = new Ledger(ranks);
    this.reduced = new Ledger(ranks);
  }

  addTimes(other: Ledgers, times: number): void {
    for (const key of Object.keys(this) as (keyof this & keyof Ledgers)[])
      (this[key] as Ledger).addTimes(other[key] as Ledger, times);
  }

  load(): Load {
    return {
      within: { messages: this.messagesWithin.most(), bytes: this.bytesWithin.most() },
      across: { messages: this.messagesAcross.most(), bytes: this.bytesAcross.most() },
      reducedBytes: this.reduced.most(),
    };
  }
}

const nothing: Load = { within: { messages: 0, bytes: 0 }, across: { messages: 0, bytes: 0 }, reducedBytes: 0 };

/** Returns `a + times · b`, computed field by field. */
export const addLoads = (a: Load, b: Load, times: number): Load => ({
  within: { messages: a.within.messages + times * b.within.messages, bytes: a.within.bytes + times * b.within.bytes },
  across: { messages: a.across.messages + times * b.across.messages, bytes: a.across.bytes + times * b.across.bytes },
  reducedBytes: a.reducedBytes + times * b.reducedBytes,
});

/**
 * Computes the cost of message rounds: totals per rank and host, and the critical path. On the critical path, each
 * round takes as long as its busiest rank.
 *
 * Complexity: O(messages of all ranks); equal rounds are evaluated only one time.
 */
export const costOfRounds = (
  { worldSize, hosts = separateHosts(worldSize) }: Pick<CostParameters, "worldSize" | "hosts">,
  rounds: readonly MessageRound[],
): ScheduleCost => {
  const hostOf = new Int32Array(worldSize);
  for (const [index, host] of hosts.entries()) for (const rank of host) hostOf[rank] = index;
  const all = new Ledgers(worldSize, hosts.length);
  let path = nothing;
  let roundCount = 0;
  for (const { times = 1, sends } of rounds) {
    const round = new Ledgers(worldSize, hosts.length);
    for (let rank = 0; rank < worldSize; rank++) {
      for (const { peer, bytes, summed = false } of sends(rank)) {
        const [from, to] = [hostOf[rank]!, hostOf[peer]!];
        if (from === to) {
          round.messagesWithin.add(rank, peer, 1);
          round.bytesWithin.add(rank, peer, bytes);
        } else {
          round.messagesAcross.add(rank, peer, 1);
          round.bytesAcross.add(from, to, bytes);
        }
        round.messages.add(rank, peer, 1);
        round.bytes.add(rank, peer, bytes);
        if (summed) round.reduced.received[peer]! += bytes;
      }
    }
    if (round.messages.most() > 0 && times > 0) {
      roundCount += times;
      path = addLoads(path, round.load(), times);
      all.addTimes(round, times);
    }
  }
  return {
    rounds: roundCount,
    messages: Math.max(...all.messages.sent, 0),
    bytes: Math.max(...all.bytes.sent, 0),
    reducedBytes: all.reduced.most(),
    busiest: all.load(),
    path,
  };
};

/**
 * Returns the peers of `rank` in the send order of a direct algorithm. The next rank is first, so that not all ranks
 * begin with rank 0.
 */
export const peersOf = (rank: number, worldSize: number): number[] =>
  Array.from({ length: worldSize - 1 }, (_, i) => (rank + 1 + i) % worldSize);
