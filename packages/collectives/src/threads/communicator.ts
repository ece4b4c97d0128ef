import { ArgumentError, type CollectiveHandle, type Communicator } from "@skein/tensor-core";
import { carryBlocking } from "../execute.ts";
import type { Later } from "../transport/transport.ts";
import { checkRequest } from "./check-request.ts";
import { type Control, groupLimit, laneCount, requestWord, tagOf, type WorldConnection } from "./control.ts";
import { RankLanes } from "./rank-lanes.ts";

/** `Communicator` of a rank with a companion thread; `wait` blocks. */
export interface BlockingCommunicator extends Communicator {
  wait(handle: CollectiveHandle): void;
  split(partition: readonly (readonly number[])[], name: string): BlockingCommunicator;
}

/** The part of a partition that holds `rank`. @throws ArgumentError unless every rank of the group stands in one part. */
const partOf = (partition: readonly (readonly number[])[], rank: number, worldSize: number): readonly number[] => {
  const named = partition.flat().toSorted((a, b) => a - b);
  if (named.length !== worldSize || named.some((member, i) => member !== i)) {
    throw new ArgumentError(
      `split: ${JSON.stringify(partition)} is not a partition of ${worldSize} ranks; name each of 0 to ${worldSize - 1} once`,
    );
  }
  return partition.find((part) => part.includes(rank))!;
};

/** What the groups of one world share: its lanes, and which group numbers are taken. */
class Member {
  readonly control: Control;
  readonly connection: WorldConnection;
  private readonly lanes: RankLanes["lanes"];
  private groups = 1;

  constructor(connection: WorldConnection) {
    const { control, lanes } = new RankLanes(connection);
    this.connection = connection;
    this.control = control;
    this.lanes = lanes;
  }

  makeGroup(members: readonly number[], name: string): number {
    if (this.groups === groupLimit)
      throw new ArgumentError(`split: a world has at most ${groupLimit - 1} groups; split once for each mesh axis and keep the groups`);
    const group = this.groups++;
    this.control.writeGroup(group, members, name);
    return group;
  }

  start(request: Parameters<Communicator["start"]>[0], tag: number): CollectiveHandle {
    this.control.throwIfUnusable(tag);
    const { lane } = this.lanes[request.priority ?? 0]!;
    return {
      id: (lane.post({ ...request, tag }, request.awaited === true && !this.connection.companionOnly) >>> 0) * laneCount + lane.index,
    };
  }

  wait({ id }: CollectiveHandle): void {
    const { lane, carrier } = this.lanes[id % laneCount]!;
    const sequence = Math.floor(id / laneCount) | 0;
    const tag = this.control.words[this.control.requestAt(lane.index, sequence) + requestWord.tag]!;
    const { companionOnly } = this.connection;
    while (!lane.has(sequence)) {
      this.control.throwIfUnusable(tag);
      if (!companionOnly && lane.tryLock()) {
        try {
          while (!lane.has(sequence)) lane.finish(carryBlocking(carrier.carry(lane.next()), (later) => this.waitForMail(later, tag)));
        } catch (error) {
          this.control.failWith(error, tag);
          throw error;
        } finally {
          lane.unlock();
        }
      } else lane.waitFor(() => lane.has(sequence) || (!companionOnly && !lane.isLocked), tag);
    }
  }

  private waitForMail(later: Later<unknown>, tag: number): void {
    if (!this.control.waitUntil(later.ready, "mail")) later.expire();
    this.control.throwIfUnusable(tag);
  }

  bytesSent(): number {
    return this.lanes.reduce((sum, { lane }) => sum + lane.bytesSent, 0);
  }
}

const communicatorOf = (member: Member, group: number, members: readonly number[]): BlockingCommunicator => {
  const { memory, rank: worldRank } = member.connection;
  const rank = members.indexOf(worldRank);
  const worldSize = members.length;
  const started = Array.from({ length: laneCount }, () => 0);
  return {
    rank,
    worldSize,
    start: (request) => {
      checkRequest(request, { rank, worldSize, memory });
      const sequence = ++started[request.priority ?? 0]!;
      return member.start(request, tagOf(sequence, request.kind, group));
    },
    wait: (handle) => member.wait(handle),
    bytesSent: () => member.bytesSent(),
    split: (partition, name) => {
      const part = partOf(partition, rank, worldSize).map((position) => members[position]!);
      return communicatorOf(member, member.makeGroup(part, name), part);
    },
  };
};

/**
 * Join a world as the rank that `connection` names. Call in the rank's compute thread; the companion thread, started by
 * the world, carries requests out meanwhile. Between threads `wait` lends a hand: when the companion has not begun, the waiting
 * thread does the work itself, which saves waking another thread.
 *
 * Regions must lie in the world's memory. `start` costs a few stores and a wake-up. Ranks of a group must start its requests of one priority in
 * the same order, and any two ranks those of all groups that they share.
 */
export const joinWorld = (connection: WorldConnection): BlockingCommunicator => {
  const member = new Member(connection);
  return communicatorOf(member, 0, member.control.membersOf(0));
};
