import type { WasmMemory } from "@skein/tensor-core/backend";
import type { Call, TeamFunctions } from "./team.ts";

/**
 * Indices of the words that all threads of a team share.
 *
 * `claim` is the sequence number of the region × 256 + the number of unclaimed parts. A thread claims a part by
 * decrementing `claim`; the number of unclaimed parts before the decrement is the index of the claimed part. A late
 * thread cannot claim a part of another region, because `claim` also contains the sequence number of the region.
 */
const word = {
  claim: 0,
  done: 1,
  sleepers: 2,
  waiting: 3,
  closed: 4,
  failed: 5,
  address: 6,
  bytes: 7,
  text: 8,
} as const;
const leftMask = 255;
const textBytes = 1024;
const wordCount = word.text;

/** Maximum number of threads in a team. The limit follows from the count of unclaimed parts, which is one byte. */
export const maxThreads: number = leftMask + 1;

/**
 * Size in bytes of the memory that the threads of a team share in addition to the memory of kernels: state words, and
 * the text of an error message.
 */
export const regionBytes: number = 4 * wordCount + textBytes;

/**
 * Parallel regions of a team: the calls of each part, the claims of parts, and failures. Calls are recorded in the
 * memory of kernels as f64: first the position of each part's list of calls, then these lists. A list begins with the
 * number of its calls. A call consists of a function's number, the number of arguments, and the arguments.
 */
export class ParallelRegion {
  private readonly words: Int32Array;
  private readonly text: Uint8Array;
  private readonly memory: WasmMemory;
  private readonly functions: TeamFunctions;

  constructor(shared: SharedArrayBuffer, memory: WasmMemory, functions: TeamFunctions) {
    this.words = new Int32Array(shared, 0, wordCount);
    this.text = new Uint8Array(shared, 4 * wordCount, textBytes);
    this.memory = memory;
    this.functions = functions;
  }

  /**
   * Publishes parts 1 … `parts` − 1, and wakes sleeping helpers. The record of the calls has `bytes` bytes at
   * `address`.
   */
  open(parts: number, address: number, bytes: number): void {
    const { words } = this;
    words[word.address] = address;
    words[word.bytes] = bytes;
    Atomics.store(words, word.waiting, 0);
    Atomics.store(words, word.done, 0);
    const region = (Atomics.load(words, word.claim) >>> 8) + 1;
    Atomics.store(words, word.claim, (region << 8) | (parts - 1));
    if (Atomics.load(words, word.sleepers) > 0) Atomics.notify(words, word.claim);
  }

  /** Claims a part and runs it. Returns false if all parts have been claimed. */
  help(): boolean {
    const part = this.take();
    if (part > 0) this.runPart(part);
    return part > 0;
  }

  /** Whether at least one part has not been claimed. */
  hasLeft(): boolean {
    return (Atomics.load(this.words, word.claim) & leftMask) > 0;
  }

  /** Claims a part without running it. Returns false if all parts have been claimed. */
  skip(): boolean {
    return this.take() > 0;
  }

  private take(): number {
    for (;;) {
      const claim = Atomics.load(this.words, word.claim);
      if ((claim & leftMask) === 0) return 0;
      if (Atomics.compareExchange(this.words, word.claim, claim, claim - 1) === claim) return claim & leftMask;
    }
  }

  private runPart(part: number): void {
    const { words, memory, functions } = this;
    const [address, bytes] = [words[word.address]! >>> 0, words[word.bytes]!];
    // Update the buffer as in `Arena.bytesAt`, because another thread may have grown the memory.
    if (memory.buffer.byteLength < address + bytes) memory.grow(0);
    const record = new Float64Array(memory.buffer, address, bytes / 8);
    let at = record[part]!;
    for (let calls = record[at++]!; calls > 0; calls--) {
      const fn = record[at++]!;
      const count = record[at++]!;
      functions.call(fn, ...record.subarray(at, at + count));
      at += count;
    }
  }

  /** Runs parts of regions until the team is closed. `spins` is the number of polls before the thread sleeps. */
  serve(spins: number): void {
    const { words } = this;
    for (let polls = 0; Atomics.load(words, word.closed) === 0; ) {
      const claim = Atomics.load(words, word.claim);
      if ((claim & leftMask) > 0) {
        polls = 0;
        this.serveOne();
      } else if (++polls > spins) {
        Atomics.add(words, word.sleepers, 1);
        Atomics.wait(words, word.claim, claim);
        Atomics.sub(words, word.sleepers, 1);
        polls = 0;
      }
    }
  }

  private serveOne(): void {
    const part = this.take();
    if (part === 0) return;
    try {
      this.runPart(part);
    } catch (error) {
      this.fail(error);
    }
    Atomics.add(this.words, word.done, 1);
    if (Atomics.load(this.words, word.waiting) === 1) Atomics.notify(this.words, word.done);
  }

  private fail(error: unknown): void {
    if (Atomics.compareExchange(this.words, word.failed, 0, -1) !== 0) return; // only the first failure is reported
    const message = new TextEncoder().encode((error instanceof Error ? error.message : String(error)).slice(0, 300));
    this.text.set(message.subarray(0, textBytes));
    Atomics.store(this.words, word.failed, Math.min(textBytes, message.byteLength));
  }

  /**
   * Waits until helpers have finished `parts` parts. If `canBlock` is false, the thread polls instead of sleeping, as
   * the main thread of a browser must.
   *
   * @returns false if the parts are not finished after `milliseconds`.
   */
  join(parts: number, { spins, canBlock, milliseconds }: WaitRule): boolean {
    const { words } = this;
    for (let polls = 0; polls < spins; polls++) if (Atomics.load(words, word.done) >= parts) return true;
    const end = performance.now() + milliseconds;
    for (;;) {
      Atomics.store(words, word.waiting, 1);
      const done = Atomics.load(words, word.done);
      if (done >= parts) return true;
      const left = end - performance.now();
      if (left <= 0) return false;
      if (canBlock) Atomics.wait(words, word.done, done, left);
    }
  }

  /** Returns the error message of a helper that failed since the last call, or undefined if no helper failed. */
  takeFailure(): string | undefined {
    const length = Atomics.load(this.words, word.failed);
    if (length === 0) return undefined;
    Atomics.store(this.words, word.failed, 0);
    return new TextDecoder().decode(this.text.slice(0, length));
  }

  /** Stops the helpers. */
  close(): void {
    Atomics.store(this.words, word.closed, 1);
    Atomics.add(this.words, word.claim, 1 << 8);
    Atomics.notify(this.words, word.claim);
  }
}

export interface WaitRule {
  /** Number of polls before the thread that waits for helpers sleeps. */
  readonly spins: number;
  readonly canBlock: boolean;
  readonly milliseconds: number;
}

/** Record of a region under construction; see `ParallelRegion` for the format. */
export class RegionRecord {
  private numbers = new Float64Array(1024);
  private length = 0;
  /** Index in `numbers` of the call count of the current part. */
  private head = 0;

  begin(parts: number): void {
    this.length = parts;
  }

  beginPart(part: number): void {
    this.head = this.length;
    this.numbers[part] = this.head;
    this.reserve(1);
    this.numbers[this.length++] = 0;
  }

  readonly call: Call = (fn, ...args) => {
    this.reserve(2 + args.length);
    this.numbers[this.head]!++;
    this.numbers[this.length++] = fn;
    this.numbers[this.length++] = args.length;
    for (const value of args) this.numbers[this.length++] = value;
  };

  get written(): Float64Array {
    return this.numbers.subarray(0, this.length);
  }

  private reserve(count: number): void {
    if (this.length + count <= this.numbers.length) return;
    const larger = new Float64Array(2 * (this.length + count));
    larger.set(this.numbers);
    this.numbers = larger;
  }
}
