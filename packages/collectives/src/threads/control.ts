import type { CollectiveKind, ErrorKind, WasmMemory, WasmModule } from "@skein/tensor-core";
import {
  CollectiveError,
  type CollectivePlace,
  CollectiveTimeoutError,
  GroupClosedError,
  type LossKind,
  PeerLostError,
  PeerRevokedError,
  RanksDisagreeError,
} from "../errors.ts";
import type { Facts } from "../facts.ts";
import type { Situation } from "../select.ts";

// Words (i32) of the control block that all threads of a process share. Each region starts on its own 64-byte line, so that
// threads which wait for different things do not take each other's lines away.
//
//   state      first failure: claimed, there, length of its report; closed; then the report as text
//   ranks      for each rank of this process: bells, groups, then its lanes of requests
//   mail       for each lane and each ordered pair of ranks of this process: messages sent, slots of (address, bytes, tag); returned

/** Priorities of requests; each has a queue and mail of its own. */
export const laneCount = 4;
/** Groups that `split` may make of one world. */
export const groupLimit = 16;
export const slotCount = 8;
/** Requests of one rank and lane that may be under way at once; `start` waits when there are more. */
export const queueLength = 64;

const reportBytes = 1024;
const stateWords = 16 + reportBytes / 4;
const mailWords = 48;
const bellWords = 16 * 4;
const requestWords = 20;
const laneWords = 16 * 4 + queueLength * requestWords;
const groupNameWords = 8;

const line = (words: number): number => Math.ceil(words / 16) * 16;
const groupWords = (worldSize: number): number => line(1 + groupNameWords + worldSize);

export const stateWord = { claimed: 0, failed: 1, reportLength: 2, closed: 3, report: 16 } as const;
export const mailWord = { sent: 0, slots: 1, returned: 32 } as const;
export const laneWord = { posted: 0, done: 16, lock: 32, bytesSent: 48, requests: 64 } as const;
export const requestWord = {
  tag: 0,
  dtype: 1,
  reduction: 2,
  input: 3,
  inputBytes: 4,
  output: 5,
  outputBytes: 6,
  root: 7,
  to: 8,
  from: 9,
  capacity: 10,
  rows: 11,
  rowsBytes: 12,
  receivedRows: 13,
  receivedRowsBytes: 14,
  /** Written by who carries it out: a code of `algorithmNamed`. */
  algorithm: 15,
} as const;

export const kinds: readonly CollectiveKind[] = [
  "all-reduce",
  "reduce-scatter",
  "all-gather",
  "all-to-all",
  "broadcast",
  "send-receive",
  "barrier",
];

/** What a tag may name: a collective, or an exchange of what ranks agree on, which none asks for as a request. */
export type TaggedKind = CollectiveKind | "agreement";
const taggedKinds: readonly TaggedKind[] = [...kinds, "agreement"];

/** A tag says which request a message belongs to: its number in its group, the group and its kind. 29 bits. */
export const tagOf = (sequence: number, kind: TaggedKind, group = 0): number =>
  ((sequence & 0x3fffff) << 7) | (group << 3) | taggedKinds.indexOf(kind);
export const kindOf = (tag: number): TaggedKind => taggedKinds[tag & 7]!;
export const groupOf = (tag: number): number => (tag >>> 3) & 15;

/**
 * What a thread can wait for. `mail`: a message came or was given back. `requests`: its own rank posted one. `done`: one of its own
 * requests ended. Apart from each other, so that nobody is woken for nothing.
 */
export type Bell = "mail" | "requests" | "done";
const bells: Readonly<Record<Bell, number>> = { mail: 0, requests: 16, done: 32 };
const companionBusyWord = 48;

/** What the choice of algorithms goes by, beside the request; equal on all ranks. */
export type Preference = Pick<Situation, "hosts" | "link" | "order">;

/** What a thread needs to take part: shared memory and numbers, so it can be posted to a worker. */
export interface WorldConnection {
  readonly control: SharedArrayBuffer;
  readonly memory: WasmMemory;
  readonly kernels: WasmModule | "none";
  readonly rank: number;
  readonly worldSize: number;
  /** Ranks that are threads of this process, this one among them. */
  readonly localRanks: readonly number[];
  /** Only the companion can carry requests out, as it alone holds the sockets. */
  readonly companionOnly: boolean;
  readonly timeoutMilliseconds: number;
  readonly spins: number;
  readonly preference: Preference;
  /** What else must be the same on all ranks; they compare it when they join. */
  readonly facts?: Facts;
}

/** Bytes of the control block of `localCount` ranks of a world. */
export const controlBytes = (worldSize: number, localCount: number = worldSize): number =>
  4 * (stateWords + localCount * rankWords(worldSize) + laneCount * localCount * localCount * mailWords);

const rankWords = (worldSize: number): number => bellWords + groupLimit * groupWords(worldSize) + laneCount * laneWords;

interface Report extends CollectivePlace {
  readonly cause: "timeout" | LossKind | "disagree" | "other";
  readonly text: string;
  readonly milliseconds?: number;
  readonly kind?: ErrorKind;
  readonly code?: string;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Reads and waits on a control block in the name of one rank. */
export class Control {
  readonly words: Int32Array;
  readonly rank: number;
  readonly worldSize: number;
  readonly timeoutMilliseconds: number;
  private readonly localRanks: readonly number[];
  private readonly localIndex: number;
  private readonly spins: Readonly<Record<Bell, number>>;
  private readonly names: string[] = [];

  constructor({ control, rank, worldSize, localRanks, timeoutMilliseconds, spins, companionOnly }: WorldConnection) {
    this.words = new Int32Array(control);
    this.rank = rank;
    this.worldSize = worldSize;
    this.localRanks = localRanks;
    this.localIndex = localRanks.indexOf(rank);
    this.timeoutMilliseconds = timeoutMilliseconds;
    // A peer is about to ring the mail bell, and a companion that holds sockets that of what is done; other threads of one rank wait
    // for each other asleep.
    this.spins = { mail: spins, requests: 0, done: companionOnly ? spins : 0 };
  }

  // Places.

  private rankAt(localIndex: number): number {
    return stateWords + localIndex * rankWords(this.worldSize);
  }

  bellAt(bell: Bell): number {
    return this.rankAt(this.localIndex) + bells[bell];
  }

  laneAt(lane: number): number {
    return this.rankAt(this.localIndex) + bellWords + groupLimit * groupWords(this.worldSize) + lane * laneWords;
  }

  requestAt(lane: number, sequence: number): number {
    return this.laneAt(lane) + laneWord.requests + ((sequence >>> 0) % queueLength) * requestWords;
  }

  /** Mail from one rank of this process to another. */
  mailAt(lane: number, from: number, to: number): number {
    const count = this.localRanks.length;
    const pair = this.localRanks.indexOf(from) * count + this.localRanks.indexOf(to);
    return this.rankAt(count) + (lane * count * count + pair) * mailWords;
  }

  isLocal(rank: number): boolean {
    return this.localRanks.includes(rank);
  }

  // Groups: written once by the rank's compute thread, before any request names them.

  private groupAt(group: number): number {
    return this.rankAt(this.localIndex) + bellWords + group * groupWords(this.worldSize);
  }

  writeGroup(group: number, members: readonly number[], name: string): void {
    const at = this.groupAt(group);
    this.words[at] = members.length;
    new Uint8Array(this.words.buffer, 4 * (at + 1), 4 * groupNameWords).set(encoder.encode(name).subarray(0, 4 * groupNameWords));
    this.words.set(members, at + 1 + groupNameWords);
  }

  /** Ranks of a group, in its order. Group 0 is the world. */
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
    return `${kindOf(tag)} #${(tag >>> 7) & 0x3fffff}${group === 0 ? "" : ` of group ${this.groupName(group)}`}`;
  }

  // State.

  get closed(): boolean {
    return Atomics.load(this.words, stateWord.closed) !== 0;
  }

  get unusable(): boolean {
    return this.closed || Atomics.load(this.words, stateWord.failed) !== 0;
  }

  /** The failure that made the group unusable, as this rank sees it during request `tag`. */
  failure(tag = 0): CollectiveError | undefined {
    if (Atomics.load(this.words, stateWord.failed) === 0) return undefined;
    const length = this.words[stateWord.reportLength]!;
    const bytes = new Uint8Array(this.words.buffer, 4 * stateWord.report, length).slice();
    const report = JSON.parse(decoder.decode(bytes)) as Report;
    const place = { rank: this.rank, peer: report.peer, collective: report.collective || this.nameOf(tag) };
    switch (report.cause) {
      case "timeout":
        return new CollectiveTimeoutError(place, report.milliseconds!, report.rank);
      case "lost":
        return new PeerLostError(place, report.text);
      case "revoked":
        return new PeerRevokedError(place, report.text);
      case "disagree":
        return new RanksDisagreeError(place, report.text);
      case "other":
        return new CollectiveError(report.kind!, report.code!, place, report.text);
    }
  }

  throwIfUnusable(tag: number): void {
    const failure = this.failure(tag);
    if (failure !== undefined) throw failure;
    if (this.closed) throw new GroupClosedError({ rank: this.rank, peer: this.rank, collective: this.nameOf(tag) });
  }

  private fail(report: Omit<Report, "rank" | "collective">, tag: number): void {
    if (Atomics.compareExchange(this.words, stateWord.claimed, 0, 1) !== 0) {
      // The first failure stands. Another thread may still be writing it down; whoever returns from here must find the group unusable.
      Atomics.wait(this.words, stateWord.failed, 0, this.timeoutMilliseconds);
      return;
    }
    const whole: Report = { ...report, rank: this.rank, collective: tag === 0 ? "" : this.nameOf(tag) };
    let bytes = encoder.encode(JSON.stringify(whole));
    if (bytes.length > reportBytes) bytes = encoder.encode(JSON.stringify({ ...whole, text: whole.text.slice(0, reportBytes / 4) }));
    new Uint8Array(this.words.buffer, 4 * stateWord.report, bytes.length).set(bytes);
    this.words[stateWord.reportLength] = bytes.length;
    Atomics.store(this.words, stateWord.failed, 1); // last, so that whoever sees it sees the rest
    Atomics.notify(this.words, stateWord.failed);
    this.wakeAll();
  }

  /** Make the group unusable for all ranks of this process, and wake all who wait. The same holds for the other `fail…`. */
  failTimeout(peer: number, tag: number): void {
    this.fail({ cause: "timeout", peer, text: "", milliseconds: this.timeoutMilliseconds }, tag);
  }

  failLost(peer: number, tag: number, reason: string, kind: LossKind = "lost"): void {
    this.fail({ cause: kind, peer, text: reason }, tag);
  }

  failDisagree(peer: number, tag: number, difference: string): void {
    this.fail({ cause: "disagree", peer, text: difference }, tag);
  }

  /** Any error of a companion: those of collectives keep their meaning. */
  failWith(error: unknown, tag: number): void {
    if (error instanceof CollectiveTimeoutError) return this.failTimeout(error.peer, tag);
    if (error instanceof PeerLostError) return this.failLost(error.peer, tag, error.reason);
    if (error instanceof PeerRevokedError) return this.failLost(error.peer, tag, error.reason, "revoked");
    if (error instanceof RanksDisagreeError) return this.failDisagree(error.peer, tag, error.difference);
    const { kind = "invariant", code = "internal" } = error as { kind?: ErrorKind; code?: string };
    const peer = error instanceof CollectiveError ? error.peer : this.rank;
    this.fail({ cause: "other", peer, kind, code, text: error instanceof Error ? error.message : String(error) }, tag);
  }

  close(): void {
    Atomics.store(this.words, stateWord.closed, 1);
    this.wakeAll();
  }

  // Waiting.

  /** Tell `rank`, of this process, that something happened. */
  ring(rank: number, bell: Bell): void {
    const at = this.rankAt(this.localRanks.indexOf(rank)) + bells[bell];
    Atomics.add(this.words, at, 1);
    Atomics.notify(this.words, at);
  }

  /** A companion with requests under way waits for mail; whoever posts another then rings that bell too. */
  set companionBusy(busy: boolean) {
    Atomics.store(this.words, this.rankAt(this.localIndex) + companionBusyWord, busy ? 1 : 0);
  }

  get companionBusy(): boolean {
    return Atomics.load(this.words, this.rankAt(this.localIndex) + companionBusyWord) === 1;
  }

  /**
   * Block until `ready`, which whoever makes it true announces by the bell. Looks without sleeping first, where that pays.
   *
   * @returns false after the timeout. A failed or closed group ends the wait.
   */
  waitUntil(ready: () => boolean, bell: Bell, milliseconds: number = this.timeoutMilliseconds): boolean {
    for (let i = this.spins[bell]; i > 0; i--) if (ready()) return true;
    const deadline = performance.now() + milliseconds;
    const at = this.bellAt(bell);
    for (;;) {
      const seen = Atomics.load(this.words, at);
      if (ready() || this.unusable) return true;
      const left = deadline - performance.now();
      if (left <= 0) return false;
      Atomics.wait(this.words, at, seen, left);
    }
  }

  private wakeAll(): void {
    for (const rank of this.localRanks) for (const bell of Object.keys(bells) as Bell[]) this.ring(rank, bell);
  }
}
