import { ArgumentError, type Communicator } from "@skein/tensor-core";
import type { CollectiveHandle } from "@skein/tensor-core/backend";
import { runWalkBlocking } from "./execute.ts";
import { RanksDisagreeError } from "./errors.ts";
import { type Facts, requireSameFacts } from "./facts.ts";
import type { Future } from "./transport/transport.ts";
import { algorithmNamed } from "./requests/request-executor.ts";
import { checkRequest } from "./requests/check-request.ts";
import type { ControlBlock } from "./control-block/control-block.ts";
import { groupLimit, laneCount, requestWord } from "./control-block/layout.ts";
import { tagOf } from "./control-block/tag.ts";
import type { WorldConnection } from "./control-block/world-connection.ts";
import { RankLanes } from "./lanes/rank-lanes.ts";

/** `Communicator` of a rank with a companion thread; `wait` blocks. */
export interface BlockingCommunicator extends Communicator {
  wait(handle: CollectiveHandle): void;
  exchangeTexts(text: string): readonly string[];
  split(partition: readonly (readonly number[])[], name: string): BlockingCommunicator;
}

/**
 * The part of a partition that holds `rank`.
 *
 * @throws ArgumentError unless every rank of the group stands in one part.
 */
const partOf = (partition: readonly (readonly number[])[], rank: number, worldSize: number): readonly number[] => {
  const named = partition.flat().toSorted((a, b) => a - b);
  if (named.length !== worldSize || named.some((member, i) => member !== i)) {
    throw new ArgumentError(
      `split: ${JSON.stringify(partition)} is not a partition of ${worldSize} ranks; name each of 0 to ${worldSize - 1} once`,
    );
  }
  return partition.find((part) => part.includes(rank))!;
};

/** What travels first of a text: its length, and its beginning; a short one whole. */
const headBytes = 64;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** What the groups of one world share: its lanes, and which group numbers are taken. */
class Member {
  readonly control: ControlBlock;
  readonly connection: WorldConnection;
  private readonly lanes: RankLanes["lanes"];
  private readonly messages: RankLanes["messages"];
  private groups = 1;
  private readonly agreements: number[] = [];

  constructor(connection: WorldConnection) {
    const { control, lanes, messages } = new RankLanes(connection);
    this.connection = connection;
    this.control = control;
    this.lanes = lanes;
    this.messages = messages;
  }

  /**
   * Make a group of some ranks of `parent`, all of which split it at once. Its number is agreed on: one of a part may
   * have split before without the others.
   */
  makeGroup(
    parent: number,
    partition: readonly (readonly number[])[],
    name: string,
    members: readonly number[],
  ): number {
    const parents = this.control.membersOf(parent);
    const { rank } = this.connection;
    const answers = this.exchangeTexts(JSON.stringify({ name, partition, free: this.groups }), parent).map(
      (text) => JSON.parse(text) as { readonly name: string; readonly partition: unknown; readonly free: number },
    );
    const shown = (answer: (typeof answers)[number]): string => `"${answer.name}" ${JSON.stringify(answer.partition)}`;
    const other = answers.findIndex((answer) => shown(answer) !== shown(answers[0]!));
    if (other > 0) {
      const difference = `rank ${parents[other]} splits the group into ${shown(answers[other]!)}, rank ${parents[0]} into ${shown(answers[0]!)}`;
      const error = new RanksDisagreeError(
        { rank, peer: parents[rank === parents[other] ? 0 : other]!, collective: `split #${this.agreements[parent]}` },
        difference,
      );
      this.control.failWith(error, 0);
      throw error;
    }
    const group = Math.max(...answers.map(({ free }) => free));
    if (group >= groupLimit)
      throw new ArgumentError(
        `split: a world has at most ${groupLimit - 1} groups; split once for each mesh axis and keep the groups`,
      );
    this.groups = group + 1;
    this.control.writeGroup(group, members, name);
    return group;
  }

  /** Each member's text, in the order of the group. */
  exchangeTexts(text: string, group: number): string[] {
    const worldSize = this.control.membersOf(group).length;
    if (worldSize === 1) return [text];
    const bytes = encoder.encode(text);
    const head = new Uint8Array(headBytes);
    new DataView(head.buffer).setUint32(0, bytes.byteLength);
    head.set(bytes.subarray(0, headBytes - 4), 4);
    const heads = this.gather(head, group, worldSize);
    const lengths = heads.map((one) => new DataView(one.buffer).getUint32(0));
    const most = Math.max(...lengths);
    if (most <= headBytes - 4) return heads.map((one, i) => decoder.decode(one.subarray(4, 4 + lengths[i]!)));
    const whole = new Uint8Array(most);
    whole.set(bytes);
    return this.gather(whole, group, worldSize).map((one, i) => decoder.decode(one.subarray(0, lengths[i])));
  }

  /** The bytes of each member, as many of each. */
  private gather(bytes: Uint8Array, group: number, worldSize: number): Uint8Array[] {
    const [input, output] = [this.messages.take(bytes.byteLength), this.messages.take(worldSize * bytes.byteLength)];
    input.set(bytes);
    const sequence = (this.agreements[group] ?? 0) + 1;
    this.agreements[group] = sequence;
    this.wait(
      this.start(
        { kind: "all-gather", dtype: "u8", input, output, awaited: true },
        tagOf(sequence, "agreement", group),
      ),
    );
    const parts = Array.from({ length: worldSize }, (_, i) =>
      output.slice(i * bytes.byteLength, (i + 1) * bytes.byteLength),
    );
    this.messages.give(input);
    this.messages.give(output);
    return parts;
  }

  start(request: Parameters<Communicator["start"]>[0], tag: number): CollectiveHandle {
    this.control.throwIfUnusable(tag);
    const { lane } = this.lanes[request.priority ?? 0]!;
    return {
      id:
        (lane.post({ ...request, tag }, request.awaited === true && !this.connection.companionOnly) >>> 0) * laneCount +
        lane.index,
    };
  }

  wait({ id }: CollectiveHandle): void {
    const { lane, executor } = this.lanes[id % laneCount]!;
    const sequence = Math.floor(id / laneCount) | 0;
    const tag = this.control.words[this.control.requestAt(lane.index, sequence) + requestWord.tag]!;
    const { companionOnly } = this.connection;
    while (!lane.has(sequence)) {
      this.control.throwIfUnusable(tag);
      if (!companionOnly && lane.tryLock()) {
        try {
          while (!lane.has(sequence))
            lane.finish(runWalkBlocking(executor.execute(lane.next()), (future) => this.waitForMessage(future, tag)));
        } catch (error) {
          this.control.failWith(error, tag);
          throw error;
        } finally {
          lane.unlock();
        }
      } else lane.waitFor(() => lane.has(sequence) || (!companionOnly && !lane.isLocked), tag);
    }
  }

  algorithmOf({ id }: CollectiveHandle): string | undefined {
    const code = this.lanes[id % laneCount]!.lane.algorithmOf(Math.floor(id / laneCount) | 0);
    return code === undefined ? undefined : algorithmNamed(code);
  }

  private waitForMessage(future: Future<unknown>, tag: number): void {
    if (!this.control.waitUntil(future.ready, "message")) future.expire();
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
      const lane = request.priority ?? 0;
      // A message between some ranks goes by the number of the next collective of all: the others need not count it.
      const sequence = started[lane]! + 1;
      if (request.kind !== "send-receive") started[lane] = sequence;
      return member.start(request, tagOf(sequence, request.kind, group));
    },
    wait: (handle) => member.wait(handle),
    algorithmOf: (handle) => member.algorithmOf(handle),
    bytesSent: () => member.bytesSent(),
    members,
    exchangeTexts: (text) => member.exchangeTexts(text, 0),
    split: (partition, name) => {
      const part = partOf(partition, rank, worldSize).map((position) => members[position]!);
      return communicatorOf(member, member.makeGroup(group, partition, name, part), part);
    },
  };
};

/** What the ranks of several processes may have differently, and threads of one cannot. */
const factsOf = ({ preference: { order = "rank", link }, facts }: WorldConnection): Facts => ({
  "order of sums": order,
  "link times": link === undefined ? "those of no link file" : `those of a link file, ${JSON.stringify(link)}`,
  ...facts,
});

/**
 * Join a world as the rank that `connection` names. Call in the rank's compute thread; the companion thread, started by
 * the world, carries requests out meanwhile. Between threads `wait` lends a hand: when the companion has not begun, the
 * waiting thread does the work itself, which saves waking another thread.
 *
 * In a world of several processes all ranks join together, and compare what must be the same on all.
 *
 * Regions must lie in the world's memory. `start` costs a few stores and a wake-up. Ranks of a group must start its
 * requests of one priority in the same order, and any two ranks those of all groups that they share.
 *
 * @throws RanksDifferError where ranks choose algorithms by different things, or have other facts; CollectiveError
 * where a rank does not join.
 */
export const joinWorld = (connection: WorldConnection): BlockingCommunicator => {
  const member = new Member(connection);
  const { control } = member;
  if (connection.companionOnly && !control.unusable) {
    const texts = member.exchangeTexts(JSON.stringify(factsOf(connection)), 0);
    try {
      requireSameFacts(texts, connection.rank);
    } catch (error) {
      control.failWith(error, 0);
      throw error;
    }
  }
  return communicatorOf(member, 0, control.membersOf(0));
};
