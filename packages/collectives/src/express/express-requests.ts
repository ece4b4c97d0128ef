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
import { expressBytes, type ExpressConnection, mostBegun } from "./express-connection.ts";

/** What is said to have carried these requests out. */
export const expressName = "express";
/** The most ranks of a group whose small requests go this way: each writes to each other. */
const mostRanks = 8;
/** How long a rank with a core of its own looks before it sleeps, and how long it sleeps at first and at most. */
const lookingMilliseconds = 1;
const firstRestMilliseconds = 0.05;
const longestRestMilliseconds = 1;

/** A request that the rank's own thread carries out. */
interface ExpressRequest extends Pick<CollectiveRequest, "kind" | "dtype" | "reduction" | "root" | "input" | "output"> {
  readonly id: number;
  readonly tag: number;
  readonly lane: Lane;
  /** The last request before it of those that the companion carries out on the same lane. */
  readonly after: number;
  /** In the order of the group; undefined is this rank. */
  readonly members: readonly (ExpressConnection | undefined)[];
  begun: boolean;
}

/** A request of the companion's that must wait for some of ours. */
interface HeldRequest {
  readonly lane: Lane;
  readonly sequence: number;
  /** The last of them. */
  readonly until: number;
}

/** Which requests of the world go over connections of the rank's own thread. */
export interface ExpressOffer {
  /** Ranks that each rank has such a connection to. */
  readonly peers: readonly (readonly number[])[];
  /** What sums are ordered by. */
  readonly order: "rank" | "any";
}

export interface ExpressParts {
  readonly control: ControlBlock;
  readonly arithmetic: Arithmetic;
  readonly memory: MessageMemory;
  readonly connections: readonly ExpressConnection[];
  readonly offer: ExpressOffer;
  /** No other thread wants this one's core: it may look for a while before it sleeps. */
  readonly hasOwnCore: boolean;
}

const exchanged: ReadonlySet<CollectiveKind> = new Set<CollectiveKind>([
  "all-reduce",
  "reduce",
  "all-gather",
  "barrier",
]);

/** Bytes of its input that each member of the group sends to one of them. */
const bytesFor = ({ kind, root = 0, input }: ExpressRequest, member: number): number =>
  kind === "reduce" && member !== root ? 0 : input.byteLength;

const overlap = (a: Uint8Array, b: Uint8Array): boolean =>
  a.byteOffset < b.byteOffset + b.byteLength && b.byteOffset < a.byteOffset + a.byteLength;

const touches = (region: Uint8Array, { input, output }: ExpressRequest): boolean =>
  overlap(region, input) || overlap(region, output);

/**
 * The small requests of a rank, which its own thread carries out over connections of its own: each member of the group
 * sends its whole input to each other, and all combine what they have in the order of ranks, to the bits of any other
 * way. Of a reduce the root alone gets inputs and combines them; all others get empty messages, since a rank must not
 * be further ahead of its peers than they have room for. One round: a rank has done its part for the others as soon as
 * its bytes have left, which is when it starts the request, and so holds nobody up while it computes.
 *
 * Which requests these are depends on nothing that differs between ranks. Those of one lane are done in the order in
 * which they were started; one begins when the companion has done what was started before it on the lane. What the
 * companion does later may overtake it, unless they share memory.
 *
 * Cost: one round of P − 1 messages, (P − 1) · S bytes per rank, S of a reduce; S at most 64 KiB and P at most 8.
 */
export class ExpressRequests {
  bytesSent = 0;
  private readonly parts: ExpressParts;
  private readonly words: ExpressWords;
  private readonly groups = new Map<number, ExpressRequest["members"] | undefined>();
  /** Started and not done, by lane. */
  private readonly queues: readonly ExpressRequest[][] = Array.from({ length: laneCount }, () => []);
  private readonly lanes = new Map<number, number>();
  private held: HeldRequest[] = [];
  private lastId = 0;

  constructor(parts: ExpressParts) {
    this.parts = parts;
    this.words = new ExpressWords(parts.control);
  }

  /** Whether anything is started and not done, or was done with bytes that have not left. */
  get busy(): boolean {
    return this.lanes.size > 0;
  }

  covers({ kind, dtype, input, ragged }: CollectiveRequest, group: number): boolean {
    if (input.byteLength > expressBytes || ragged !== undefined) return false;
    if (!exchanged.has(kind)) return false;
    const members = this.membersOf(group);
    if (members === undefined) return false;
    // In any order the bits of floats are those of an algorithm, once there are three.
    const exact = !combiningKinds.has(kind) || members.length === 2 || dtype === "i32" || dtype === "u32";
    return exact || this.parts.offer.order === "rank";
  }

  /** Start a request that is covered. @returns its number, from 1 on. */
  start(request: CollectiveRequest, tag: number, group: number, lane: Lane): number {
    const { kind, dtype, reduction, root, input, output } = request;
    const id = ++this.lastId;
    const after = lane.posted;
    const members = this.membersOf(group)!;
    const rest = { kind, dtype, input, output, ...(reduction && { reduction }), ...(root !== undefined && { root }) };
    this.queues[lane.index]!.push({ ...rest, id, tag, lane, after, members, begun: false });
    this.lanes.set(id, lane.index);
    this.advance();
    return id;
  }

  /** The tag of a request; `undefined` once it is done. */
  tagOf(id: number): number | undefined {
    return this.find(id)?.tag;
  }

  /** Which of our requests a request of the companion's is held by, if one does. */
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

  /** The last of our requests on a lane that `request` shares memory with, if one does. */
  before({ input, output, ragged }: CollectiveRequest, lane: Lane): number | undefined {
    const regions = ragged === undefined ? [input, output] : [input, output, ragged.rows, ragged.receivedRows];
    return this.queues[lane.index]!.findLast((entry) => regions.some((region) => touches(region, entry)))?.id;
  }

  /** Request `sequence` was posted as held, until request `until` of ours is done. */
  hold(lane: Lane, sequence: number, until: number): void {
    this.held.push({ lane, sequence, until });
    this.advance();
  }

  /** Go on with all that can go on; never blocks. @returns whether anything did. */
  advance(): boolean {
    if (!this.words.take()) return false; // the world is over, as whoever waits is told
    // The system says "nothing yet" by an error, whose stack would cost more than the call.
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
   * Go on until `ready`. Looks first where that pays, and then sleeps ever longer; the companion watches over the time.
   *
   * @param id of the request of ours that this waits for; none while it is one of the companion's.
   */
  wait(ready: () => boolean, tag: number, id: number | undefined): void {
    const { control, hasOwnCore } = this.parts;
    let since = performance.now();
    let rest = 0;
    let said = "";
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
        said = this.say(id, said);
        if (performance.now() - since > 3 * control.timeoutMilliseconds)
          control.failLost(control.rank, tag, "its communication thread does not answer");
        control.waitUntil(ready, "done", rest);
      }
    } finally {
      if (said !== "") this.words.end();
    }
  }

  /** Tell the companion whom request `id` waits for. @returns what was said; `said` is what was said before. */
  private say(id: number | undefined, said: string): string {
    const entry = id === undefined ? undefined : this.find(id);
    const first = entry && this.queues[entry.lane.index]![0]!; // whose parts come before its own
    const missing = first?.begun === true ? this.missingOf(first) : undefined;
    const now = missing === undefined ? "" : `${first!.id} ${missing.peer} ${missing.ended}`;
    if (now === said) return said;
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
    const all = ranks.length > 1 && ranks.length <= mostRanks && ranks.every((a) => ranks.every((b) => linked(a, b)));
    const members = all ? ranks.map((rank) => connections.find(({ peer }) => peer === rank)) : undefined;
    this.groups.set(group, members);
    return members;
  }

  private advanceLane(queue: ExpressRequest[]): boolean {
    let progress = false;
    for (let i = 0; i < Math.min(queue.length, mostBegun); i++) {
      const entry = queue[i]!;
      if (entry.begun) continue;
      const waits = queue.slice(0, i).some(({ output }) => overlap(entry.input, output));
      if (waits || !entry.lane.has(entry.after)) break; // what is sent is in order, too
      this.begin(entry);
      progress = true;
    }
    while (queue[0]?.begun === true && this.isComplete(queue[0])) {
      this.finish(queue.shift()!);
      progress = true;
    }
    return progress;
  }

  private begin(entry: ExpressRequest): void {
    entry.begun = true;
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

  /** Whether all parts of a request have come, and its own have left. */
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
      const place = { rank: control.rank, peer: connection.peer, collective: control.nameOf(tag) };
      throw new PeerLostError(place, error.message);
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
