import type { Algorithm, LinkCosts, Place, Schedule } from "@skein/collectives";
import { ArgumentError, InvariantError } from "@skein/tensor-core";
import { EventQueue } from "./event-queue.ts";
import { type Flow, SharedLinks } from "./shared-links.ts";
import { plainSeconds, type TimeArithmetic } from "./time-arithmetic.ts";

/** What messages of a class of links take: α + β · bytes. */
export interface MessageTimes<T> {
  /** α. */
  readonly perMessage: T;
  /** β. */
  readonly perByte: T;
}

/** α, β and γ in some arithmetic. */
export interface MessageCosts<T> {
  /** Between ranks of one host. */
  readonly within: MessageTimes<T>;
  /** Between hosts, whose ranks share the host's link, either way. */
  readonly across: MessageTimes<T>;
  /** γ: of a summand. */
  readonly reducePerByte: T;
}

/** One collective of all ranks: the place of each, and the size of an element. */
export interface SimulatedCollectivePlace extends Omit<Place, "rank" | "to" | "from"> {
  readonly bytesPerElement: number;
}

export interface ScheduleTimes<T> {
  /** When the last rank is done. */
  readonly end: T;
  /** By rank. */
  readonly ends: readonly T[];
}

interface Message<T> extends Flow<T> {
  readonly from: number;
  readonly to: number;
  readonly round: number;
  readonly bytes: number;
}

/** What a rank has to do in a round. */
interface Round<T> {
  readonly sends: Message<T>[];
  readonly numReceives: number;
  readonly summedBytes: number;
}

/** A rank on its way through its rounds. */
interface RankState<T> {
  readonly rounds: readonly Round<T>[];
  round: number;
  /** Of this round: messages that were sent and that came. */
  sent: number;
  received: number;
  receiving: boolean;
  /** Messages of others for this rank, in the order in which their senders came to them. */
  readonly offered: Message<T>[];
  end: T;
}

const roundsOf = <T>(
  schedule: Schedule,
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
 * Simulate the schedules of all ranks of one collective, message by message.
 *
 * A message begins when both its ends have come to its round, its sender has sent those before it, and its receiver
 * receives no other; it takes α + β · bytes. A rank sends one message and receives one at a time, in either way at full
 * speed. Messages that leave a host at once share its link, and so do those that come to one: of k, each takes k times
 * its β. A rank that has all messages of a round makes its sums, γ for each byte of a summand, and goes on to the next.
 * Copies cost nothing, and a sum does not go on while messages travel, so for vectors in segments this is an upper
 * bound.
 *
 * Cost: O(messages · log messages) where each host has a link of its own.
 *
 * @param time plain numbers, or fractions: over them the result is exact.
 * @throws ArgumentError for a collective without ranks or with figures that are none; InvariantError for schedules that
 * do not fit together.
 */
export const simulateScheduleIn = <T>(
  time: TimeArithmetic<T>,
  algorithm: Algorithm,
  { bytesPerElement, ...place }: SimulatedCollectivePlace,
  costs: MessageCosts<T>,
): ScheduleTimes<T> => {
  const { worldSize, elementCount, hosts } = place;
  for (const [name, value, least] of [
    ["worldSize", worldSize, 1],
    ["elementCount", elementCount, 0],
    ["bytesPerElement", bytesPerElement, 1],
  ] as const)
    if (!(Number.isSafeInteger(value) && value >= least))
      throw new ArgumentError(`simulateSchedule: ${name} ${value} was given; use a whole number from ${least}`);
  if (algorithm.kind === "send-receive")
    throw new ArgumentError("simulateSchedule: a send-receive was given, which is one message; it takes α + β · bytes");
  const hostOf = Array.from({ length: worldSize }, (_, rank) =>
    hosts ? hosts.findIndex((ranks) => ranks.includes(rank)) : rank,
  );
  if (hostOf.includes(-1))
    throw new ArgumentError(`simulateSchedule: hosts leave out rank ${hostOf.indexOf(-1)}; every rank is on one`);
  const numHosts = hosts?.length ?? worldSize;

  const messageOf =
    (from: number) =>
    (round: number, to: number, bytes: number): Message<T> => ({
      from,
      to,
      round,
      bytes,
      // The way out of a host, and the way into the other one.
      links:
        hostOf[from] === hostOf[to] ? [] : [hostOf[from]!, numHosts + hostOf[to]!].map((link) => ({ link, flows: 1 })),
      left: time.zero,
      since: time.zero,
      slowdown: 0,
      version: 0,
    });
  const ranks = Array.from(
    { length: worldSize },
    (_, rank): RankState<T> => ({
      rounds: roundsOf(algorithm.schedule({ ...place, rank }), rank, bytesPerElement, messageOf(rank)),
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

  const take = (rank: RankState<T>): void => {
    const expected = rank.rounds[rank.round]?.numReceives ?? 0;
    if (rank.receiving || rank.received === expected) return;
    const next = rank.offered.findIndex(({ round }) => round === rank.round);
    if (next === -1) return;
    const [message] = rank.offered.splice(next, 1) as [Message<T>];
    rank.receiving = true;
    const { perMessage, perByte } = message.links.length === 0 ? costs.within : costs.across;
    message.left = time.times(perByte, message.bytes);
    events.push(time.add(now, perMessage), () => links.begin(message));
  };
  // Called when a rank comes to a round, and when it has sent a message.
  const offer = (rank: RankState<T>): void => {
    const message = rank.rounds[rank.round]?.sends[rank.sent];
    if (message === undefined) return;
    const to = ranks[message.to];
    if (to === undefined)
      throw new InvariantError(`${algorithm.name}: rank ${message.from} sends to rank ${message.to} of ${worldSize}`);
    to.offered.push(message);
    take(to);
  };
  const enter = (rank: RankState<T>): void => {
    rank.round++;
    [rank.sent, rank.received] = [0, 0];
    if (rank.round === rank.rounds.length) {
      rank.end = now;
      return;
    }
    offer(rank);
    take(rank);
    leave(rank);
  };
  /** Go on to the next round if all messages of this one are done. */
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
    take(to);
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
      `${algorithm.name}: rank ${stuck} of ${worldSize} stays in round ${ranks[stuck]!.round}; its messages have no other end`,
    );
  return {
    end: ranks.reduce((latest, { end }) => (time.compare(end, latest) > 0 ? end : latest), time.zero),
    ends: ranks.map(({ end }) => end),
  };
};

/**
 * `simulateScheduleIn` plain seconds, for measured links.
 *
 * @example
 * simulateSchedule(ringAllReduce, { worldSize: 8, elementCount: 2 ** 20, bytesPerElement: 4 }, ethernetLinks).end;
 */
export const simulateSchedule = (
  algorithm: Algorithm,
  place: SimulatedCollectivePlace,
  link: LinkCosts,
): ScheduleTimes<number> => {
  const timesOf = ({ secondsPerMessage, secondsPerByte }: LinkCosts["within"]): MessageTimes<number> => ({
    perMessage: secondsPerMessage,
    perByte: secondsPerByte,
  });
  return simulateScheduleIn(plainSeconds, algorithm, place, {
    within: timesOf(link.within),
    across: timesOf(link.across),
    reducePerByte: link.reduceSecondsPerByte,
  });
};
