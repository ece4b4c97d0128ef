import { type CollectiveError, GroupClosedError, type LossKind } from "../errors.ts";
import { causeOf, decodeRecord, encodeRecord, errorOf, type FailureCause } from "./failure-record.ts";
import {
  channelWords,
  companionBusyWord,
  exchangeWord,
  exchangeWords,
  eventWords,
  groupLimit,
  groupNameWords,
  groupWords,
  laneCount,
  laneWord,
  laneWords,
  queueLength,
  rankWords,
  requestWords,
  sleepersWord,
  stateWord,
  stateWords,
  type WakeEvent,
  wakeEvents,
} from "./layout.ts";
import { groupOf, kindOf, sequenceOf } from "./tag.ts";
import type { WorldConnection } from "./world-connection.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Reads and writes the control block for one rank, and waits for its events. */
export class ControlBlock {
  readonly words: Int32Array;
  readonly rank: number;
  readonly worldSize: number;
  readonly timeoutMilliseconds: number;
  private readonly localRanks: readonly number[];
  private readonly localIndex: number;
  private readonly spins: Readonly<Record<WakeEvent, number>>;
  private readonly names: string[] = [];

  constructor({ control, rank, worldSize, localRanks, timeoutMilliseconds, spins, companionOnly }: WorldConnection) {
    this.words = new Int32Array(control);
    this.rank = rank;
    this.worldSize = worldSize;
    this.localRanks = localRanks;
    this.localIndex = localRanks.indexOf(rank);
    this.timeoutMilliseconds = timeoutMilliseconds;
    // Polling is used only for events that usually happen soon: a peer's message arrives, or a companion that owns
    // sockets completes a request. Threads of one rank wait for each other by sleeping.
    this.spins = { message: spins, request: 0, done: companionOnly ? spins : 0 };
  }

  // Word indices.

  private rankAt(localIndex: number): number {
    return stateWords + localIndex * rankWords(this.worldSize);
  }

  eventAt(event: WakeEvent): number {
    return this.rankAt(this.localIndex) + wakeEvents[event];
  }

  laneAt(lane: number): number {
    return this.rankAt(this.localIndex) + eventWords + groupLimit * groupWords(this.worldSize) + lane * laneWords;
  }

  requestAt(lane: number, sequence: number): number {
    return this.laneAt(lane) + laneWord.requests + ((sequence >>> 0) % queueLength) * requestWords;
  }

  /**
   * Returns the index of the first control-block word of the channel for messages from rank `from` to rank `to`, both
   * in this process.
   */
  channelAt(lane: number, from: number, to: number): number {
    const count = this.localRanks.length;
    const pair = this.localRanks.indexOf(from) * count + this.localRanks.indexOf(to);
    return this.rankAt(count) + (lane * count * count + pair) * channelWords;
  }

  /**
   * Returns the index of the first control-block word that describes the exchanges of `rank`, a rank of this process,
   * on a lane. An exchange is a small collective of all ranks of this process (see `ThreadExchange`).
   */
  exchangeAt(lane: number, rank: number): number {
    const count = this.localRanks.length;
    const channels = this.rankAt(count) + laneCount * count * count * channelWords;
    return channels + (lane * count + this.localRanks.indexOf(rank)) * exchangeWords;
  }

  /**
   * Whether `peer` has begun an exchange on this lane that this rank has not begun. A rank begins an exchange by
   * publishing its operand.
   */
  isAheadOf(lane: number, peer: number): boolean {
    const published = (rank: number): number =>
      Atomics.load(this.words, this.exchangeAt(lane, rank) + exchangeWord.shown);
    return ((published(peer) - published(this.rank)) | 0) > 0;
  }

  isLocal(rank: number): boolean {
    return this.localRanks.includes(rank);
  }

  // Groups are written once, by the rank's compute thread, before any request uses them.

  private groupAt(group: number): number {
    return this.rankAt(this.localIndex) + eventWords + group * groupWords(this.worldSize);
  }

  writeGroup(group: number, members: readonly number[], name: string): void {
    const at = this.groupAt(group);
    this.words[at] = members.length;
    new Uint8Array(this.words.buffer, 4 * (at + 1), 4 * groupNameWords).set(
      encoder.encode(name).subarray(0, 4 * groupNameWords),
    );
    this.words.set(members, at + 1 + groupNameWords);
  }

  /** Returns the world ranks of a group's members, in group order. Group 0 is the world. */
  membersOf(group: number): readonly number[] {
    if (group === 0) return Array.from({ length: this.worldSize }, (_, rank) => rank);
    const at = this.groupAt(group);
    const begin = at + 1 + groupNameWords;
    return [...this.words.subarray(begin, begin + this.words[at]!)];
  }

  private groupName(group: number): string {
    const at = this.groupAt(group);
    return (this.names[group] ??= decoder
      .decode(new Uint8Array(this.words.buffer, 4 * (at + 1), 4 * groupNameWords).slice())
      .replaceAll("\0", ""));
  }

  nameOf(tag: number): string {
    if (tag === 0) return "no collective";
    const group = groupOf(tag);
    return `${kindOf(tag)} #${sequenceOf(tag)}${group === 0 ? "" : ` of group ${this.groupName(group)}`}`;
  }

  // State.

  get closed(): boolean {
    return Atomics.load(this.words, stateWord.closed) !== 0;
  }

  get unusable(): boolean {
    return this.closed || Atomics.load(this.words, stateWord.failed) !== 0;
  }

  /**
   * Returns the failure that made the group unusable, as an error of this rank during request `tag`. Undefined: the
   * group has not failed.
   */
  failure(tag = 0): CollectiveError | undefined {
    if (Atomics.load(this.words, stateWord.failed) === 0) return undefined;
    const length = this.words[stateWord.recordLength]!;
    const record = decodeRecord(new Uint8Array(this.words.buffer, 4 * stateWord.record, length).slice());
    return errorOf(record, { rank: this.rank, peer: record.peer, collective: record.collective || this.nameOf(tag) });
  }

  throwIfUnusable(tag: number): void {
    const failure = this.failure(tag);
    if (failure !== undefined) throw failure;
    if (this.closed) throw new GroupClosedError({ rank: this.rank, peer: this.rank, collective: this.nameOf(tag) });
  }

  private fail(cause: FailureCause, tag: number): void {
    if (Atomics.compareExchange(this.words, stateWord.claimed, 0, 1) !== 0) {
      // Only the first failure is recorded. Another thread may still be writing this failure, so wait until the group
      // is unusable.
      Atomics.wait(this.words, stateWord.failed, 0, this.timeoutMilliseconds);
      return;
    }
    const bytes = encodeRecord({ ...cause, rank: this.rank, collective: tag === 0 ? "" : this.nameOf(tag) });
    new Uint8Array(this.words.buffer, 4 * stateWord.record, bytes.length).set(bytes);
    this.words[stateWord.recordLength] = bytes.length;
    Atomics.store(this.words, stateWord.failed, 1); // Stored last: a thread that sees the flag also sees the record.
    Atomics.notify(this.words, stateWord.failed);
    this.wakeAll();
  }

  /**
   * Makes the group unusable for all ranks of this process because `peer` did not respond in time, and wakes all
   * waiting threads. The other `fail…` methods do the same for other causes.
   */
  failTimeout(peer: number, tag: number): void {
    this.fail({ cause: "timeout", peer, text: "", milliseconds: this.timeoutMilliseconds }, tag);
  }

  failLost(peer: number, tag: number, reason: string, kind: LossKind = "lost"): void {
    this.fail({ cause: kind, peer, text: reason }, tag);
  }

  failDisagree(peer: number, tag: number, difference: string): void {
    this.fail({ cause: "disagree", peer, text: difference }, tag);
  }

  /** Makes the group unusable because of any error. If the error is a `CollectiveError`, its cause is recorded. */
  failWith(error: unknown, tag: number): void {
    this.fail(causeOf(error, this.rank, this.timeoutMilliseconds), tag);
  }

  close(): void {
    Atomics.store(this.words, stateWord.closed, 1);
    this.wakeAll();
  }

  // Waiting.

  /** Increments the event count of `rank`, a rank of this process, and wakes the threads that wait for the event. */
  notify(rank: number, event: WakeEvent): void {
    const at = this.rankAt(this.localRanks.indexOf(rank)) + wakeEvents[event];
    Atomics.add(this.words, at, 1);
    // A thread that is about to sleep increments the sleeper count before it reads the event count, so that at least
    // one of the two threads sees the other thread's write.
    if (Atomics.load(this.words, at + sleepersWord) > 0) Atomics.notify(this.words, at);
  }

  /**
   * Wakes the threads that wait for an event, like `notify`, but increments the event count only if a thread sleeps.
   * Use this method only for events whose waiting threads all use `waitUntil`, which checks its condition again before
   * it sleeps.
   */
  wake(rank: number, event: WakeEvent): void {
    const at = this.rankAt(this.localRanks.indexOf(rank)) + wakeEvents[event];
    if (Atomics.load(this.words, at + sleepersWord) > 0) this.notify(rank, event);
  }

  /**
   * Whether the companion has requests in flight, and therefore waits for messages. A thread that posts a request must
   * then also notify the message event, to wake the companion.
   */
  set companionBusy(busy: boolean) {
    Atomics.store(this.words, this.rankAt(this.localIndex) + companionBusyWord, busy ? 1 : 0);
  }

  get companionBusy(): boolean {
    return Atomics.load(this.words, this.rankAt(this.localIndex) + companionBusyWord) === 1;
  }

  /**
   * Polls `ready` as often as configured for this event, which may be zero times.
   *
   * @returns whether `ready` returned true.
   */
  isSoon(ready: () => boolean, event: WakeEvent): boolean {
    for (let i = this.spins[event]; i > 0; i--) if (ready()) return true;
    return false;
  }

  /**
   * Blocks until `ready` returns true. The thread that makes `ready` true must notify the event. Polls before it
   * sleeps, if spinning is enabled for this event.
   *
   * @returns false after the timeout; true if `ready` returned true, or if the group has failed or was closed.
   */
  waitUntil(ready: () => boolean, event: WakeEvent, milliseconds: number = this.timeoutMilliseconds): boolean {
    if (this.isSoon(ready, event)) return true;
    const deadline = performance.now() + milliseconds;
    const at = this.eventAt(event);
    Atomics.add(this.words, at + sleepersWord, 1);
    try {
      for (;;) {
        const seen = Atomics.load(this.words, at);
        if (ready() || this.unusable) return true;
        const left = deadline - performance.now();
        if (left <= 0) return false;
        Atomics.wait(this.words, at, seen, left);
      }
    } finally {
      Atomics.sub(this.words, at + sleepersWord, 1);
    }
  }

  /**
   * Variant of `waitUntil` that does not block: resolves when the event count differs from `seen`, or after the
   * timeout.
   */
  async whenNotified(event: WakeEvent, seen: number, milliseconds: number): Promise<void> {
    const at = this.eventAt(event);
    Atomics.add(this.words, at + sleepersWord, 1);
    const { async, value } = Atomics.waitAsync(this.words, at, seen, milliseconds);
    if (async) await value;
    Atomics.sub(this.words, at + sleepersWord, 1);
  }

  private wakeAll(): void {
    for (const rank of this.localRanks)
      for (const event of Object.keys(wakeEvents) as WakeEvent[]) this.notify(rank, event);
  }
}
