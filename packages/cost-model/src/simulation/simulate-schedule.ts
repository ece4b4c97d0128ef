import type { Algorithm, LinkCosts, ScheduleParameters, CollectiveSchedule } from "@skein/collectives";
import { ArgumentError, InvariantError } from "@skein/tensor-core";
import { EventQueue } from "./event-queue.ts";
import { type Flow, SharedLinks } from "./shared-links.ts";
import { plainSeconds, type TimeArithmetic } from "./time-arithmetic.ts";

/** Time of a message over one class of links: α + β · bytes. */
export interface MessageTimes<T> {
  /** α: time per message. */
  readonly perMessage: T;
  /** β: time per byte. */
  readonly perByte: T;
}

/** Costs α, β and γ of messages and sums, in the simulation's number type. */
export interface MessageCosts<T> {
  /** Costs of messages between ranks of one host. */
  readonly within: MessageTimes<T>;
  /** Costs of messages between hosts. The ranks of a host share the host's link in each direction. */
  readonly across: MessageTimes<T>;
  /** γ: time per summand byte of a sum. */
  readonly reducePerByte: T;
}

/** Parameters of a collective's schedule that are equal on all ranks, and the element size in bytes. */
export interface SimulatedCollectiveSize extends Omit<ScheduleParameters, "rank" | "to" | "from"> {
  readonly bytesPerElement: number;
}

export interface ScheduleTimes<T> {
  /** Time when the last rank ends. */
  readonly end: T;
  /** Time when each rank ends. */
  readonly ends: readonly T[];
}

interface Message<T> extends Flow<T> {
  readonly from: number;
  readonly to: number;
  readonly round: number;
  readonly bytes: number;
}

/** One rank's sends, number of receives and reduced bytes in one round of the schedule. */
interface Round<T> {
  readonly sends: Message<T>[];
  readonly numReceives: number;
  readonly summedBytes: number;
}

/** State of a rank in the simulation. */
interface RankState<T> {
  readonly rounds: readonly Round<T>[];
  round: number;
  /** Number of messages sent in this round. */
  sent: number;
  /** Number of messages received in this round. */
  received: number;
  receiving: boolean;
  /** Messages to this rank that are ready to be sent, in the order in which they became ready. */
  readonly offered: Message<T>[];
  end: T;
}

const roundsOf = <T>(
  schedule: CollectiveSchedule,
  rank: number,
  bytesPerElement: number,
  messageOf: (round: number, to: number, bytes: number) => Message<T>,
) =>
  schedule.rounds.map((steps, round): Round<T> => {
    let [numReceives, summed] = [0, 0];
    const sends: Message<T>[] = [];
    for (const step of steps) {
      if (step.action === "send") sends.push(messageOf(round, step.peer, step.source.count * bytesPerElement));
      else if (step.action === "receive") {
        if (step.peer === rank) throw new InvariantError(`${schedule.algorithm}: rank ${rank} receives from itself`);
        numReceives++;
        if (step.combine === "reduce") summed += step.target.count;
      } else if (step.action === "fold") summed += (step.sources.length - 1) * step.target.count;
    }
    return { sends, numReceives, summedBytes: summed * bytesPerElement };
  });

/**
 * Simulates the schedules of all ranks of one collective, message by message.
 *
 * A message begins when its sender and its receiver have both reached its round, the sender has sent its earlier
 * messages, and the receiver receives no other message. A message takes α + β · bytes. A rank can send one message and
 * receive one message at the same time, both at full speed. Messages that leave or enter a host at the same time share
 * the host's link: with k messages, β is k times as large. After the last message of a round, a rank computes its sums,
 * γ per summand byte, and continues with the next round. Copies are free. Sums do not overlap with messages, so for
 * vectors divided into segments the result is an upper bound.
 *
 * Cost: O(messages · log messages) if each host has its own link.
 *
 * @param time Arithmetic of times: plain numbers, or fractions, which give an exact result.
 * @throws ArgumentError if the collective has no ranks or invalid sizes; InvariantError if the schedules do not match.
 */
export const simulateScheduleIn = <T>(
  time: TimeArithmetic<T>,
  algorithm: Algorithm,
  { bytesPerElement, ...situation }: SimulatedCollectiveSize,
  costs: MessageCosts<T>,
): ScheduleTimes<T> => {
  const { worldSize, elementCount, hosts } = situation;
  for (const [name, value, least] of [
    ["worldSize", worldSize, 1],
    ["elementCount", elementCount, 0],
    ["bytesPerElement", bytesPerElement, 1],
  ] as const)
    if (!(Number.isSafeInteger(value) && value >= least))
      throw new ArgumentError(
        `simulateSchedule: ${name} is ${value}, but must be a whole number from ${least}; correct ${name}`,
      );
  if (algorithm.kind === "send-receive")
    throw new ArgumentError(
      "simulateSchedule does not support send-receive, which is a single message; its time is α + β · bytes",
    );
  const hostOf = Array.from({ length: worldSize }, (_, rank) =>
    hosts ? hosts.findIndex((ranks) => ranks.includes(rank)) : rank,
  );
  if (hostOf.includes(-1))
    throw new ArgumentError(
      `simulateSchedule: hosts do not contain rank ${hostOf.indexOf(-1)}; put every rank on a host`,
    );
  const numHosts = hosts?.length ?? worldSize;

  const messageOf =
    (from: number) =>
    (round: number, to: number, bytes: number): Message<T> => ({
      from,
      to,
      round,
      bytes,
      // Links of the message: outgoing link of the sender's host, and incoming link of the receiver's host.
      links:
        hostOf[from] === hostOf[to] ? [] : [hostOf[from]!, numHosts + hostOf[to]!].map((link) => ({ link, flows: 1 })),
      remaining: time.zero,
      since: time.zero,
      slowdown: 0,
      version: 0,
    });
  const ranks = Array.from(
    { length: worldSize },
    (_, rank): RankState<T> => ({
      rounds: roundsOf(algorithm.schedule({ ...situation, rank }), rank, bytesPerElement, messageOf(rank)),
      round: -1,
      sent: 0,
      received: 0,
      receiving: false,
      offered: [],
      end: time.zero,
    }),
  );
  const links = new SharedLinks<T, Message<T>>(2 * numHosts, (flows) => flows, time);
  const events = new EventQueue<T, () => void>(time.compare);
  let now = time.zero;

  const receiveNext = (rank: RankState<T>): void => {
    const expected = rank.rounds[rank.round]?.numReceives ?? 0;
    if (rank.receiving || rank.received === expected) return;
    const next = rank.offered.findIndex(({ round }) => round === rank.round);
    if (next === -1) return;
    const [message] = rank.offered.splice(next, 1) as [Message<T>];
    rank.receiving = true;
    const { perMessage, perByte } = message.links.length === 0 ? costs.within : costs.across;
    message.remaining = time.times(perByte, message.bytes);
    events.push(time.add(now, perMessage), () => links.begin(message));
  };
  // Called when a rank enters a round, and after it has sent a message.
  const offer = (rank: RankState<T>): void => {
    const message = rank.rounds[rank.round]?.sends[rank.sent];
    if (message === undefined) return;
    const to = ranks[message.to];
    if (to === undefined)
      throw new InvariantError(`${algorithm.name}: rank ${message.from} sends to rank ${message.to} of ${worldSize}`);
    to.offered.push(message);
    receiveNext(to);
  };
  const enter = (rank: RankState<T>): void => {
    rank.round++;
    [rank.sent, rank.received] = [0, 0];
    if (rank.round === rank.rounds.length) {
      rank.end = now;
      return;
    }
    offer(rank);
    receiveNext(rank);
    leave(rank);
  };
  /** Enters the next round if all messages of this round are done. */
  const leave = (rank: RankState<T>): void => {
    const { sends, numReceives, summedBytes } = rank.rounds[rank.round]!;
    if (rank.sent < sends.length || rank.received < numReceives) return;
    events.push(time.add(now, time.times(costs.reducePerByte, summedBytes)), () => enter(rank));
  };
  const arrive = (message: Message<T>): void => {
    links.end(message);
    const [from, to] = [ranks[message.from]!, ranks[message.to]!];
    from.sent++;
    to.receiving = false;
    to.received++;
    offer(from);
    receiveNext(to);
    leave(from);
    leave(to);
  };

  for (const rank of ranks) events.push(now, () => enter(rank));
  for (;;) {
    if (events.nextAt === undefined || time.compare(events.nextAt, now) !== 0) {
      links.settle(now, (message, endsAt) => {
        const { version } = message;
        events.push(endsAt, () => {
          if (version === message.version) arrive(message);
        });
      });
      if (events.nextAt === undefined) break;
      now = events.nextAt;
    }
    events.pop()!();
  }
  const stuck = ranks.findIndex(({ round, rounds }) => round < rounds.length);
  if (stuck !== -1)
    throw new InvariantError(
      `${algorithm.name}: rank ${stuck} of ${worldSize} is stuck in round ${ranks[stuck]!.round}, because its messages have no counterpart`,
    );
  return {
    end: ranks.reduce((latest, { end }) => (time.compare(end, latest) > 0 ? end : latest), time.zero),
    ends: ranks.map(({ end }) => end),
  };
};

/**
 * Simulates a collective like `simulateScheduleIn`. Times are plain numbers in seconds, with costs of measured links.
 * @example
 * ```ts
 * import { ethernetLinks } from "@skein/collectives";
 * import { ringAllReduce } from "@skein/collectives/algorithms";
 * const size = { worldSize: 4, elementCount: 1000, bytesPerElement: 4 };
 * const { end, ends } = simulateSchedule(ringAllReduce, size, ethernetLinks);
 * console.log(ends.length, end > 0); // 4 true
 * ```
 */
export const simulateSchedule = (
  algorithm: Algorithm,
  situation: SimulatedCollectiveSize,
  link: LinkCosts,
): ScheduleTimes<number> => {
  const timesOf = ({ secondsPerMessage, secondsPerByte }: LinkCosts["within"]): MessageTimes<number> => ({
    perMessage: secondsPerMessage,
    perByte: secondsPerByte,
  });
  return simulateScheduleIn(plainSeconds, algorithm, situation, {
    within: timesOf(link.within),
    across: timesOf(link.across),
    reducePerByte: link.reduceSecondsPerByte,
  });
};
