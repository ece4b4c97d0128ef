import type { CollectiveKind, CollectiveRequest } from "@skein/tensor-core/backend";
import type { Arithmetic } from "../arithmetic.ts";
import type { ControlBlock } from "../control-block/control-block.ts";
import { ExpressWords } from "../control-block/express-words.ts";
import { laneCount } from "../control-block/layout.ts";
import { PeerLostError, RanksDisagreeError } from "../errors.ts";
import type { Lane } from "../lanes/lane.ts";
import type { MessageMemory } from "../message-memory.ts";
import { combiningKinds } from "../requests/kind-facts.ts";
import { WireError } from "../wire/errors.ts";
import { expressBytes, type ExpressConnection, maxStarted } from "./express-connection.ts";

/** Algorithm name reported for express requests. */
export const expressName = "express";
/**
 * Maximum size of a group that uses express requests. The limit is low because each rank writes to every other rank.
 */
const maxRanks = 8;
/** Time that a rank with a dedicated core polls before it sleeps. */
const lookingMilliseconds = 1;
/** Duration of a waiting thread's first sleep. */
const firstRestMilliseconds = 0.05;
/** Maximum duration of a waiting thread's sleep. */
const longestRestMilliseconds = 1;

/** A request that the rank's compute thread executes over express connections. */
interface ExpressRequest extends Pick<CollectiveRequest, "kind" | "dtype" | "reduction" | "root" | "input" | "output"> {
  readonly id: number;
  readonly tag: number;
  readonly lane: Lane;
  /** Sequence number, on the same lane, of the last request that the companion must execute before this request. */
  readonly after: number;
  /** Express connection to each member, in group order; undefined for this rank. */
  readonly members: readonly (ExpressConnection | undefined)[];
  isStarted: boolean;
}

/** A request of the companion that must not be executed before certain express requests are done. */
interface HeldRequest {
  readonly lane: Lane;
  readonly sequence: number;
  /** Number of the last express request that must be done before this request is executed. */
  readonly until: number;
}

/** Connections and settings that determine which requests are express requests. Equal on all ranks. */
export interface ExpressOffer {
  /** For each rank, the ranks to which that rank has an express connection. */
  readonly peers: readonly (readonly number[])[];
  /** Order of sums: rank order, or any order. */
  readonly order: "rank" | "any";
}

export interface ExpressRequestsOptions {
  readonly control: ControlBlock;
  readonly arithmetic: Arithmetic;
  readonly memory: MessageMemory;
  readonly connections: readonly ExpressConnection[];
  readonly offer: ExpressOffer;
  /** Whether this compute thread has a dedicated core. If true, the thread polls for a short time before it sleeps. */
  readonly hasOwnCore: boolean;
}

const exchanged: ReadonlySet<CollectiveKind> = new Set<CollectiveKind>([
  "all-reduce",
  "reduce",
  "all-gather",
  "barrier",
]);

/** Returns the number of input bytes that every other member sends to member `member` of the group. */
const bytesFor = ({ kind, root = 0, input }: ExpressRequest, member: number): number =>
  kind === "reduce" && member !== root ? 0 : input.byteLength;

const overlap = (a: Uint8Array, b: Uint8Array): boolean =>
  a.byteOffset < b.byteOffset + b.byteLength && b.byteOffset < a.byteOffset + a.byteLength;

const touches = (region: Uint8Array, { input, output }: ExpressRequest): boolean =>
  overlap(region, input) || overlap(region, output);

/**
 * Small requests of a rank, executed by its compute thread over express connections. Each member of the group sends its
 * complete input to every other member, and every member combines the inputs in rank order, so the result is bitwise
 * identical to the result of any other algorithm in rank order. For a reduce, only the root receives and combines
 * inputs. The other ranks receive empty messages, so that no rank runs further ahead of its peers than their buffers
 * allow. There is only one round: a rank sends its input when it starts the request. The other ranks need nothing else
 * from this rank, so they do not wait while it computes.
 *
 * The choice of express requests depends only on values that are equal on all ranks. Express requests of one lane
 * complete in the order in which they were started. Each express request begins after the companion has executed all
 * earlier requests of the lane. A later request of the companion may overtake an express request, unless the two
 * requests share memory.
 *
 * Cost: one round of P − 1 messages, (P − 1) · S bytes per rank, S bytes for a reduce. S is at most 64 KiB, and P is at
 * most 8.
 */
export class ExpressRequests {
  bytesSent = 0;
  private readonly parts: ExpressRequestsOptions;
  private readonly words: ExpressWords;
  private readonly groups = new Map<number, ExpressRequest["members"] | undefined>();
  /** Pending requests of each lane, oldest first. */
  private readonly queues: readonly ExpressRequest[][] = Array.from({ length: laneCount }, () => []);
  private readonly lanes = new Map<number, number>();
  private held: HeldRequest[] = [];
  private lastId = 0;

  constructor(parts: ExpressRequestsOptions) {
    this.parts = parts;
    this.words = new ExpressWords(parts.control);
  }

  /** Whether any request is pending. */
  get busy(): boolean {
    return this.lanes.size > 0;
  }

  covers({ kind, dtype, input, ragged }: CollectiveRequest, group: number): boolean {
    if (input.byteLength > expressBytes || ragged !== undefined) return false;
    if (!exchanged.has(kind)) return false;
    const members = this.membersOf(group);
    if (members === undefined) return false;
    // With `order: "any"` and three or more ranks, float sums must have the bits of the selected algorithm.
    const exact = !combiningKinds.has(kind) || members.length === 2 || dtype === "i32" || dtype === "u32";
    return exact || this.parts.offer.order === "rank";
  }

  /**
   * Starts a request for which `covers` returned true.
   *
   * @returns sequence number of the request, starting at 1.
   */
  start(request: CollectiveRequest, tag: number, group: number, lane: Lane): number {
    const { kind, dtype, reduction, root, input, output } = request;
    const id = ++this.lastId;
    const after = lane.posted;
    const members = this.membersOf(group)!;
    const rest = { kind, dtype, input, output, ...(reduction && { reduction }), ...(root !== undefined && { root }) };
    this.queues[lane.index]!.push({ ...rest, id, tag, lane, after, members, isStarted: false });
    this.lanes.set(id, lane.index);
    this.advance();
    return id;
  }

  /** Returns the tag of a request, or undefined after the request is done. */
  tagOf(id: number): number | undefined {
    return this.find(id)?.tag;
  }

  /**
   * Returns the number of the express request that must be done before the companion executes its request `sequence`.
   * Undefined: the companion does not have to wait.
   */
  heldBy(sequence: number, lane: Lane): number | undefined {
    return this.held.find((entry) => entry.lane === lane && entry.sequence === sequence)?.until;
  }

  private find(id: number): ExpressRequest | undefined {
    const lane = this.lanes.get(id);
    return lane === undefined ? undefined : this.queues[lane]!.find((entry) => entry.id === id);
  }

  /** Whether request `id` is done. */
  has(id: number): boolean {
    return !this.lanes.has(id);
  }

  /** Returns the number of the last express request on a lane that shares memory with `request`, or undefined. */
  before({ input, output, ragged }: CollectiveRequest, lane: Lane): number | undefined {
    const regions = ragged === undefined ? [input, output] : [input, output, ragged.rows, ragged.receivedRows];
    return this.queues[lane.index]!.findLast((entry) => regions.some((region) => touches(region, entry)))?.id;
  }

  /**
   * Prevents the companion from executing a request until express request `until` is done.
   *
   * @param sequence number of the request on its lane. The request was posted with `held` set to true.
   */
  hold(lane: Lane, sequence: number, until: number): void {
    this.held.push({ lane, sequence, until });
    this.advance();
  }

  /**
   * Advances all pending requests as far as possible, without blocking.
   *
   * @returns whether any request made progress.
   */
  advance(): boolean {
    if (!this.words.take()) return false; // The world is closed; waiting threads get an error.
    // The system reports "no data yet" as an error; a stack trace would take longer than the call.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    let progress = false;
    try {
      for (const connection of this.parts.connections) if (!connection.flushed) connection.flush();
      for (const queue of this.queues) if (queue.length > 0 && this.advanceLane(queue)) progress = true;
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
      this.words.leave();
    }
    return progress;
  }

  /**
   * Waits until `ready` returns true. Polls first if the thread has a dedicated core, then sleeps for increasing
   * intervals. The companion checks the timeout.
   *
   * @param id number of the express request to wait for. Absent: the thread waits for a request of the companion.
   */
  wait(ready: () => boolean, tag: number, id: number | undefined): void {
    const { control, hasOwnCore } = this.parts;
    let since = performance.now();
    let rest = 0;
    let published = "";
    try {
      while (!ready()) {
        if (this.advance()) {
          since = performance.now();
          rest = 0;
          continue;
        }
        if (ready()) return;
        control.throwIfUnusable(tag);
        if (rest === 0) {
          if (hasOwnCore && performance.now() - since < lookingMilliseconds) continue;
          rest = firstRestMilliseconds;
        } else rest = Math.min(2 * rest, longestRestMilliseconds);
        published = this.publishWait(id, published);
        if (performance.now() - since > 3 * control.timeoutMilliseconds)
          control.failLost(control.rank, tag, "its communication thread does not respond");
        control.waitUntil(ready, "done", rest);
      }
    } finally {
      if (published !== "") this.words.end();
    }
  }

  /**
   * Publishes the peer that request `id` waits for, so that the companion can check the timeout.
   *
   * @param published previous return value.
   * @returns a description of the published wait; empty if there is no wait.
   */
  private publishWait(id: number | undefined, published: string): string {
    const entry = id === undefined ? undefined : this.find(id);
    const first = entry && this.queues[entry.lane.index]![0]!; // Parts of the first request arrive first.
    const missing = first?.isStarted === true ? this.missingOf(first) : undefined;
    const now = missing === undefined ? "" : `${first!.id} ${missing.peer} ${missing.ended}`;
    if (now === published) return published;
    if (missing === undefined) this.words.end();
    else this.words.begin({ peer: missing.peer, tag: first!.tag, lane: first!.lane.index, ended: missing.ended });
    return now;
  }

  private membersOf(group: number): ExpressRequest["members"] | undefined {
    if (this.groups.has(group)) return this.groups.get(group);
    const { control, connections, offer } = this.parts;
    const ranks = control.membersOf(group);
    const linked = (a: number, b: number): boolean =>
      a === b || (offer.peers[a]!.includes(b) && offer.peers[b]!.includes(a));
    const all = ranks.length > 1 && ranks.length <= maxRanks && ranks.every((a) => ranks.every((b) => linked(a, b)));
    const members = all ? ranks.map((rank) => connections.find(({ peer }) => peer === rank)) : undefined;
    this.groups.set(group, members);
    return members;
  }

  private advanceLane(queue: ExpressRequest[]): boolean {
    let progress = false;
    for (let i = 0; i < Math.min(queue.length, maxStarted); i++) {
      const entry = queue[i]!;
      if (entry.isStarted) continue;
      const waits = queue.slice(0, i).some(({ output }) => overlap(entry.input, output));
      if (waits || !entry.lane.has(entry.after)) break; // Parts are also sent in order.
      this.begin(entry);
      progress = true;
    }
    while (queue[0]?.isStarted === true && this.isComplete(queue[0])) {
      this.finish(queue.shift()!);
      progress = true;
    }
    return progress;
  }

  private begin(entry: ExpressRequest): void {
    entry.isStarted = true;
    for (const [member, connection] of entry.members.entries()) {
      if (connection === undefined) continue;
      const part = entry.input.subarray(0, bytesFor(entry, member));
      connection.send(entry.lane.index, entry.tag, part);
      this.bytesSent += part.byteLength;
    }
  }

  private missingOf({ members, lane }: ExpressRequest): ExpressConnection | undefined {
    return members.find(
      (connection) => connection !== undefined && (connection.first(lane.index) === undefined || !connection.flushed),
    );
  }

  /** Whether the messages of all peers for a request were received, and the messages of this rank were sent. */
  private isComplete(entry: ExpressRequest): boolean {
    const { lane, members } = entry;
    const bytes = bytesFor(entry, members.indexOf(undefined));
    let complete = true;
    for (const connection of members) {
      if (connection === undefined) continue;
      if (connection.first(lane.index) === undefined) this.look(connection, entry);
      const part = connection.first(lane.index);
      if (part === undefined || !connection.flushed) complete = false;
      else if (part.tag !== entry.tag || part.bytes.byteLength !== bytes)
        this.disagree(entry, connection, part.tag, part.bytes.byteLength);
    }
    return complete;
  }

  private look(connection: ExpressConnection, { tag }: ExpressRequest): void {
    try {
      connection.look();
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      const { control } = this.parts;
      const context = { rank: control.rank, peer: connection.peer, collective: control.nameOf(tag) };
      throw new PeerLostError(context, error.message);
    }
  }

  private disagree(entry: ExpressRequest, { peer }: ExpressConnection, itsTag: number, bytes: number): never {
    const { control } = this.parts;
    const collective = control.nameOf(entry.tag);
    const expected = bytesFor(entry, entry.members.indexOf(undefined));
    throw new RanksDisagreeError(
      { rank: control.rank, peer, collective },
      `rank ${peer} sent ${bytes} bytes for ${control.nameOf(itsTag)}, ${expected} were expected for ${collective}`,
    );
  }

  private finish(entry: ExpressRequest): void {
    const { arithmetic, memory } = this.parts;
    const { kind, dtype, reduction = "sum", root = 0, input, output, lane, members } = entry;
    const parts = members.map((connection) => connection?.take(lane.index).bytes);
    const operands = parts.map((bytes) => bytes ?? input);
    if (input.byteLength > 0) {
      if (kind === "reduce" && members[root] !== undefined) output.fill(0);
      else if (combiningKinds.has(kind)) arithmetic.combine(dtype, reduction, [output], operands);
      else for (const [i, bytes] of operands.entries()) output.set(bytes, i * input.byteLength);
      for (const bytes of parts) if (bytes !== undefined && bytes.byteLength > 0) memory.give(bytes);
    }
    this.lanes.delete(entry.id);
    if (this.held.length > 0) this.releaseUntil(entry);
  }

  private releaseUntil({ id }: ExpressRequest): void {
    this.held = this.held.filter(({ lane, sequence, until }) => {
      if (until === id) lane.release(sequence);
      return until !== id;
    });
  }
}
