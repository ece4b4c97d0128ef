import { ArgumentError, type Communicator } from "@skein/tensor-core";
import type { CollectiveHandle } from "@skein/tensor-core/backend";
import { RanksDisagreeError } from "./errors.ts";
import type { Future } from "./transport/transport.ts";
import { algorithmNamed, type RequestExecutor } from "./lanes/request-executor.ts";
import type { Lane, PostedRequest } from "./lanes/lane.ts";
import type { ControlBlock } from "./control-block/control-block.ts";
import { groupLimit, laneCount, requestWord } from "./control-block/layout.ts";
import { groupOf, kindOf, tagOf } from "./control-block/tag.ts";
import type { WorldConnection } from "./control-block/world-connection.ts";
import { ExpressConnection, type ExpressRuntime } from "./express/express-connection.ts";
import { expressName, type ExpressOffer, ExpressRequests } from "./express/express-requests.ts";
import { type LaneTransports, RankLanes } from "./lanes/rank-lanes.ts";

/**
 * Size of the first message of a text exchange, in bytes. The message contains the length and the beginning of the
 * text. Short texts fit completely.
 */
const headBytes = 64;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** State shared by all groups of one rank: the rank's lanes, and the group numbers in use. */
export class RankRequests {
  readonly control: ControlBlock;
  readonly connection: WorldConnection;
  /** Whether this thread can reach the peers without the companion, and so can execute requests in `wait`. */
  private readonly canExecute: boolean;
  private readonly laneTransports: LaneTransports | undefined;
  private readonly lanes: RankLanes["lanes"];
  private readonly messages: RankLanes["messages"];
  private readonly arithmetic: RankLanes["arithmetic"];
  private express: ExpressRequests | undefined;
  private groups = 1;
  private readonly agreements: number[] = [];
  /**
   * A request whose caller announced an immediate wait (`awaited`). This thread executes the request in `wait`, usually
   * without posting it to the companion.
   */
  private deferred: { readonly lane: Lane; readonly request: PostedRequest } | undefined;

  constructor(connection: WorldConnection, laneTransports?: LaneTransports) {
    const { control, lanes, messages, arithmetic } = new RankLanes(connection, laneTransports);
    this.connection = connection;
    this.laneTransports = laneTransports;
    this.canExecute = laneTransports !== undefined || !connection.companionOnly;
    this.control = control;
    this.lanes = lanes;
    this.messages = messages;
    this.arithmetic = arithmetic;
  }

  /**
   * Enables express requests: from now on this thread executes small requests. All other ranks that agreed on `offer`
   * also enable express requests.
   */
  openExpress(offer: ExpressOffer, runtime: ExpressRuntime): void {
    const { control, messages: memory, arithmetic, connection } = this;
    const connections = (connection.express ?? []).map((end) => new ExpressConnection(end, memory, runtime));
    const hasOwnCore = runtime.hasOwnCore(connection);
    this.express = new ExpressRequests({ control, arithmetic, memory, connections, offer, hasOwnCore });
  }

  /**
   * Creates a group of some ranks of `parent`. All ranks of `parent` must call this method. Ranks agree on the group
   * number, because some of the ranks may have created other groups before.
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
    const described = (answer: (typeof answers)[number]): string =>
      `"${answer.name}" ${JSON.stringify(answer.partition)}`;
    const other = answers.findIndex((answer) => described(answer) !== described(answers[0]!));
    if (other > 0) {
      const difference = `rank ${parents[other]} splits the group into ${described(answers[other]!)}, rank ${parents[0]} into ${described(answers[0]!)}`;
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

  /** Exchanges texts between the members of a group. Returns the text of each member, in group order. */
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

  /** Gathers bytes from each member; all members must pass the same number of bytes. */
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
    this.postDeferred();
    const { lane } = this.lanes[request.priority ?? 0]!;
    if (this.express !== undefined) return this.startWithExpress(this.express, lane, request, tag);
    const posted: PostedRequest = { ...request, tag };
    const isDeferred = request.awaited === true && this.canExecute && lane.isIdle;
    if (isDeferred) this.deferred = { lane, request: posted };
    const sequence = isDeferred ? lane.nextSequence : lane.post(posted);
    return { id: (sequence >>> 0) * laneCount + lane.index };
  }

  /** Posts the deferred request to the companion, because the caller makes another call before it waits. */
  private postDeferred(): void {
    if (this.deferred === undefined) return;
    const { lane, request } = this.deferred;
    this.deferred = undefined;
    lane.post(request);
  }

  /**
   * Executes the request that `start` deferred.
   *
   * @returns whether the deferred request is number `sequence` of `lane`.
   */
  private runDeferred(lane: Lane, executor: RequestExecutor, sequence: number): boolean {
    if (this.deferred?.lane !== lane || lane.nextSequence !== sequence || !lane.tryLock()) return false;
    const { request } = this.deferred;
    const { tag } = request;
    this.deferred = undefined;
    try {
      const sent = executor.executeBlocking(lane.unposted(request), (future) => this.waitForMessage(future, tag));
      lane.finishUnposted(sent);
    } catch (error) {
      this.control.failWith(error, tag);
      lane.unlock();
      throw error;
    }
    return true;
  }

  /**
   * Variant of `start` for a rank with express requests enabled. Express requests run in this thread, concurrently with
   * the companion's requests.
   */
  private startWithExpress(
    express: ExpressRequests,
    lane: Lane,
    request: Parameters<Communicator["start"]>[0],
    tag: number,
  ): CollectiveHandle {
    return this.reportFailure(tag, () => {
      if (kindOf(tag) !== "agreement" && express.covers(request, groupOf(tag)))
        return { id: -express.start(request, tag, groupOf(tag), lane) };
      // If the lane is full, the companion may be waiting for an express request of this rank.
      if (!lane.hasRoom && express.busy) express.wait(() => lane.hasRoom || !express.busy, tag, undefined);
      const until = express.before(request, lane);
      const sequence = lane.post({ ...request, tag, held: until !== undefined });
      if (until !== undefined) express.hold(lane, sequence, until);
      else if (express.busy) express.advance();
      return { id: (sequence >>> 0) * laneCount + lane.index };
    });
  }

  /** Runs `call`. If `call` throws, makes the group unusable, and rethrows the error. */
  private reportFailure<T>(tag: number, call: () => T): T {
    try {
      return call();
    } catch (error) {
      this.control.failWith(error, tag);
      throw error;
    }
  }

  wait({ id }: CollectiveHandle): void {
    const { express } = this;
    if (id < 0) {
      const tag = express!.tagOf(-id);
      if (tag !== undefined) this.reportFailure(tag, () => express!.wait(() => express!.has(-id), tag, -id));
      return;
    }
    const { lane, executor } = this.lanes[id % laneCount]!;
    const sequence = Math.floor(id / laneCount) | 0;
    if (this.runDeferred(lane, executor, sequence)) return;
    this.postDeferred();
    const tag = this.control.words[this.control.requestAt(lane.index, sequence) + requestWord.tag]!;
    if (express?.busy === true && !lane.has(sequence))
      this.reportFailure(tag, () =>
        express.wait(() => lane.has(sequence) || !express.busy, tag, express.heldBy(sequence, lane)),
      );
    while (!lane.has(sequence)) {
      this.control.throwIfUnusable(tag);
      if (this.canExecute && lane.tryLock()) {
        try {
          while (!lane.has(sequence))
            lane.finish(executor.executeBlocking(lane.next(), (future) => this.waitForMessage(future, tag)));
        } catch (error) {
          this.control.failWith(error, tag);
          throw error;
        } finally {
          lane.unlock();
        }
      } else lane.waitFor(() => lane.has(sequence) || (this.canExecute && !lane.isLocked), tag);
    }
  }

  algorithmOf({ id }: CollectiveHandle): string | undefined {
    if (id < 0) return expressName;
    const code = this.lanes[id % laneCount]!.lane.algorithmOf(Math.floor(id / laneCount) | 0);
    return code === undefined ? undefined : algorithmNamed(code);
  }

  private waitForMessage(future: Future<unknown>, tag: number): void {
    // Futures of a transport driven by this thread poll for messages, sleep between polls, and time out on their own.
    if (this.laneTransports !== undefined) while (!future.ready()) this.control.throwIfUnusable(tag);
    else if (!this.control.waitUntil(future.ready, "message")) future.expire();
    this.control.throwIfUnusable(tag);
  }

  bytesSent(): number {
    return this.lanes.reduce((sum, { lane }) => sum + lane.bytesSent, this.express?.bytesSent ?? 0);
  }
}
