import type { CollectiveKind } from "@skein/tensor-core";
import { type CollectiveError, CollectiveTimeoutError, GroupClosedError, PeerLostError, RanksDisagreeError } from "../errors.ts";

// Words (i32) of the control block that all threads of a world share. Each region starts on its own 64-byte line, so that threads
// which wait for different things do not take each other's lines away.
//
//   state      cause, reporter, peer, tag, detail of the first failure; closed
//   mail       for each ordered pair of ranks: messages sent, then slots of (address, bytes, tag); messages returned
//   queue      for each rank: requests posted, done, lock of the one that carries them out, bytes sent (f64), then the requests

export const slotCount = 8;
const stateWords = 16;
const mailWords = 48;
const requestWords = 16;
/** Requests of one rank that may be under way at once; `start` waits when there are more. */
export const queueLength = 64;
const queueWords = 16 * 4 + queueLength * requestWords;

export const stateWord = { cause: 0, reporter: 1, peer: 2, tag: 3, detail: 4, expected: 5, closed: 6, claimed: 7 } as const;
export const mailWord = { sent: 0, slots: 1, returned: 32 } as const;
export const queueWord = { posted: 0, done: 16, lock: 32, bytesSent: 48, requests: 64 } as const;
export const requestWord = {
  kind: 0,
  dtype: 1,
  reduction: 2,
  input: 3,
  inputBytes: 4,
  output: 5,
  outputBytes: 6,
  root: 7,
  to: 8,
  from: 9,
} as const;

export const mailAt = (worldSize: number, from: number, to: number): number => stateWords + (from * worldSize + to) * mailWords;
export const queueAt = (worldSize: number, rank: number): number => stateWords + worldSize * worldSize * mailWords + rank * queueWords;
export const requestAt = (queue: number, sequence: number): number =>
  queue + queueWord.requests + ((sequence - 1) % queueLength) * requestWords;

/** Bytes of the control block of a world. */
export const controlBytes = (worldSize: number): number => 4 * (stateWords + worldSize * worldSize * mailWords + worldSize * queueWords);

const cause = { none: 0, timeout: 1, lost: 2, disagree: 3, failed: 4 } as const;

export const kinds: readonly CollectiveKind[] = [
  "all-reduce",
  "reduce-scatter",
  "all-gather",
  "all-to-all",
  "broadcast",
  "send-receive",
  "barrier",
];

/** A tag says which request of the group a message belongs to: its number and its kind. */
export const tagOf = (sequence: number, kind: CollectiveKind): number => ((sequence & 0x0fffffff) << 3) | kinds.indexOf(kind);
export const nameOf = (tag: number): string => (tag === 0 ? "no collective" : `${kinds[tag & 7]} #${(tag >>> 3) & 0x0fffffff}`);

/** What a thread needs to take part: shared memory and numbers, so it can be posted to a worker. */
export interface ThreadConnection {
  readonly control: SharedArrayBuffer;
  readonly memory: WebAssembly.Memory;
  readonly kernels: WebAssembly.Module | "none";
  readonly rank: number;
  readonly worldSize: number;
  readonly timeoutMilliseconds: number;
  readonly spins: number;
}

/** Reads and waits on a control block in the name of one rank. */
export class Control {
  readonly words: Int32Array;
  readonly rank: number;
  readonly worldSize: number;
  readonly timeoutMilliseconds: number;
  private readonly spins: number;

  constructor({ control, rank, worldSize, timeoutMilliseconds, spins }: ThreadConnection) {
    this.words = new Int32Array(control);
    this.rank = rank;
    this.worldSize = worldSize;
    this.timeoutMilliseconds = timeoutMilliseconds;
    this.spins = spins;
  }

  get closed(): boolean {
    return Atomics.load(this.words, stateWord.closed) !== 0;
  }

  /** The failure that made the group unusable, as this rank sees it during request `tag`. */
  failure(tag = 0): CollectiveError | undefined {
    const word = (name: keyof typeof stateWord): number => Atomics.load(this.words, stateWord[name]);
    const code = word("cause");
    if (code === cause.none) return undefined;
    const place = { rank: this.rank, peer: word("peer"), collective: nameOf(word("tag") || tag) };
    if (code === cause.timeout) return new CollectiveTimeoutError(place, word("detail"), word("reporter"));
    if (code === cause.lost) return new PeerLostError(place, "its thread ended");
    if (code === cause.failed) return new PeerLostError(place, "its communication thread failed; its own error says why");
    return new RanksDisagreeError(
      place,
      `rank ${place.peer} sent ${word("detail") >>> 0} bytes for ${nameOf(word("expected"))}, where rank ${word("reporter")} expected another request or size`,
    );
  }

  throwIfUnusable(tag: number): void {
    const failure = this.failure(tag);
    if (failure !== undefined) throw failure;
    if (this.closed) throw new GroupClosedError({ rank: this.rank, peer: this.rank, collective: nameOf(tag) });
  }

  /** Make the group unusable for everyone, and wake all who wait. The first failure stands. */
  fail(name: Exclude<keyof typeof cause, "none">, peer: number, tag: number, detail: number, expected = 0): void {
    if (Atomics.compareExchange(this.words, stateWord.claimed, 0, 1) !== 0) return;
    Atomics.store(this.words, stateWord.reporter, this.rank);
    Atomics.store(this.words, stateWord.peer, peer);
    Atomics.store(this.words, stateWord.tag, tag);
    Atomics.store(this.words, stateWord.detail, detail);
    Atomics.store(this.words, stateWord.expected, expected);
    Atomics.store(this.words, stateWord.cause, cause[name]); // last, so that whoever sees it sees the rest
    this.wakeAll();
  }

  close(): void {
    Atomics.store(this.words, stateWord.closed, 1);
    this.wakeAll();
  }

  /** Wait until the word at `index` differs from `seen`. Returns false after the timeout. A failed or closed group ends the wait. */
  waitForChange(index: number, seen: number, timeoutMilliseconds: number = this.timeoutMilliseconds): boolean {
    const deadline = performance.now() + timeoutMilliseconds;
    while (Atomics.load(this.words, index) === seen) {
      if (this.closed || Atomics.load(this.words, stateWord.cause) !== cause.none) return true;
      const left = deadline - performance.now();
      if (left <= 0) return false;
      // In slices: a failure or close between the check above and the wait would else go unheard.
      Atomics.wait(this.words, index, seen, Math.min(left, 50));
    }
    return true;
  }

  /** Look for a change without sleeping, for what a peer is about to do. Threads of one rank wait for each other asleep. */
  spinForChange(index: number, seen: number): boolean {
    for (let i = 0; i < this.spins; i++) if (Atomics.load(this.words, index) !== seen) return true;
    return false;
  }

  private wakeAll(): void {
    for (let from = 0; from < this.worldSize; from++) {
      const queue = queueAt(this.worldSize, from);
      for (const word of [queueWord.posted, queueWord.done, queueWord.lock]) Atomics.notify(this.words, queue + word);
      for (let to = 0; to < this.worldSize; to++) {
        const mail = mailAt(this.worldSize, from, to);
        Atomics.notify(this.words, mail + mailWord.sent);
        Atomics.notify(this.words, mail + mailWord.returned);
      }
    }
  }
}
