import { dtypes, type Reduction } from "@skein/tensor-core";
import type { CollectiveRequest, WasmMemory } from "@skein/tensor-core/backend";
import type { ControlBlock } from "../control-block/control-block.ts";
import { kindOf } from "../control-block/tag.ts";
import { laneWord, queueLength, requestWord } from "../control-block/layout.ts";

const reductions: readonly Reduction[] = ["sum", "max", "min"];
const absent = -1;

/** A request in the queue of a lane. */
export interface PostedRequest extends CollectiveRequest {
  readonly tag: number;
  /** Whether the request must not be executed before `release` is called. Default: false. */
  readonly held?: boolean;
}

/** The request to execute next. */
export interface NextRequest extends PostedRequest {
  /** Index of the request's first word in the control block. */
  readonly at: number;
}

// A memory region is stored as its address and, in the next word, its length.

const endOf = (words: Int32Array, at: number): number => (words[at]! >>> 0) + (words[at + 1]! >>> 0);

const regionAt = (words: Int32Array, at: number, memory: ArrayBufferLike): Uint8Array =>
  new Uint8Array(memory, words[at]! >>> 0, words[at + 1]! >>> 0);

/** Whether request `sequence` is among the first `done` requests. Both numbers wrap around. */
const covers = (done: number, sequence: number): boolean => ((done - sequence) | 0) >= 0;

/**
 * Queue of one rank's requests with one priority, in shared memory. The rank's compute thread posts requests, and the
 * thread with the lock executes the next request. Requests complete in the order in which they were posted.
 */
export class Lane {
  readonly index: number;
  private readonly control: ControlBlock;
  private readonly memory: WasmMemory;
  private readonly base: number;
  private readonly floats: Float64Array;

  constructor(control: ControlBlock, memory: WasmMemory, index: number) {
    this.index = index;
    this.control = control;
    this.memory = memory;
    this.base = control.laneAt(index);
    this.floats = new Float64Array(control.words.buffer);
  }

  get posted(): number {
    return Atomics.load(this.control.words, this.base + laneWord.posted);
  }

  get done(): number {
    return Atomics.load(this.control.words, this.base + laneWord.done);
  }

  get isIdle(): boolean {
    return this.posted === this.done;
  }

  /** Whether the next request exists and is not held. */
  get isDue(): boolean {
    if (this.isIdle) return false;
    const at = this.control.requestAt(this.index, (this.done + 1) | 0);
    return Atomics.load(this.control.words, at + requestWord.held) === 0;
  }

  /** Whether the queue has room for another request. */
  get hasRoom(): boolean {
    return this.has((this.posted + 1 - queueLength) | 0);
  }

  /** Allows a held request to be executed. */
  release(sequence: number): void {
    Atomics.store(this.control.words, this.control.requestAt(this.index, sequence) + requestWord.held, 0);
    this.announce();
  }

  has(sequence: number): boolean {
    return covers(this.done, sequence);
  }

  get bytesSent(): number {
    return this.floats[(this.base + laneWord.bytesSent) / 2]!;
  }

  /**
   * Locks this lane, so that this thread executes the lane's requests. Returns false if another thread has the lock.
   */
  tryLock(): boolean {
    return Atomics.compareExchange(this.control.words, this.base + laneWord.lock, 0, 1) === 0;
  }

  unlock(): void {
    Atomics.store(this.control.words, this.base + laneWord.lock, 0);
    this.control.notify(this.control.rank, "done");
    if (!this.isIdle) this.announce(); // The companion may have found the lane locked.
  }

  get isLocked(): boolean {
    return Atomics.load(this.control.words, this.base + laneWord.lock) === 1;
  }

  /** Posts a request and returns its number in this lane. Waits while the queue is full. */
  post(request: PostedRequest): number {
    const { words } = this.control;
    const sequence = this.nextSequence;
    const oldest = (sequence - queueLength) | 0;
    if (!this.has(oldest)) this.waitFor(() => this.has(oldest), request.tag);
    const at = this.control.requestAt(this.index, sequence);
    const { input, output, ragged } = request;
    words[at + requestWord.tag] = request.tag;
    words[at + requestWord.dtype] = dtypes.indexOf(request.dtype);
    words[at + requestWord.reduction] = reductions.indexOf(request.reduction ?? "sum");
    words[at + requestWord.input] = input.byteOffset;
    words[at + requestWord.inputBytes] = input.byteLength;
    words[at + requestWord.output] = output.byteOffset;
    words[at + requestWord.outputBytes] = output.byteLength;
    words[at + requestWord.root] = request.root ?? 0;
    words[at + requestWord.to] = request.to ?? absent;
    words[at + requestWord.from] = request.from ?? absent;
    words[at + requestWord.capacity] = ragged?.capacity ?? absent;
    words[at + requestWord.held] = request.held === true ? 1 : 0;
    if (ragged !== undefined) {
      words[at + requestWord.rows] = ragged.rows.byteOffset;
      words[at + requestWord.rowsBytes] = ragged.rows.byteLength;
      words[at + requestWord.receivedRows] = ragged.receivedRows.byteOffset;
      words[at + requestWord.receivedRowsBytes] = ragged.receivedRows.byteLength;
    }
    Atomics.store(words, this.base + laneWord.posted, sequence);
    this.announce();
    return sequence;
  }

  /** Number of the next request to be posted. */
  get nextSequence(): number {
    return (this.posted + 1) | 0;
  }

  /**
   * Returns a request in the format of `next`, so that this thread can execute the request without posting it. The lane
   * must be idle and locked by this thread.
   */
  unposted(request: PostedRequest): NextRequest {
    const at = this.control.requestAt(this.index, this.nextSequence);
    this.control.words[at + requestWord.tag] = request.tag;
    return { ...request, at };
  }

  /**
   * Marks a request that was executed without posting as done, and releases the lock of the lane. Only the calling
   * thread may wait for the request.
   */
  finishUnposted(bytesSent: number): void {
    const { words } = this.control;
    const sequence = this.nextSequence;
    this.floats[(this.base + laneWord.bytesSent) / 2]! += bytesSent;
    Atomics.store(words, this.base + laneWord.posted, sequence);
    Atomics.store(words, this.base + laneWord.done, sequence);
    Atomics.store(words, this.base + laneWord.lock, 0);
  }

  /**
   * Returns the code of the algorithm that executed a completed request, or undefined after its slot in the queue was
   * reused.
   */
  algorithmOf(sequence: number): number | undefined {
    if (((this.posted - sequence) | 0) >= queueLength) return undefined;
    return this.control.words[this.control.requestAt(this.index, sequence) + requestWord.algorithm];
  }

  private announce(): void {
    this.control.notify(this.control.rank, "request");
    if (this.control.companionBusy) this.control.notify(this.control.rank, "message");
  }

  /**
   * Returns the oldest pending request. The lane must be locked by this thread. Allocates only the result, because some
   * requests take only microseconds.
   */
  next(): NextRequest {
    const { words } = this.control;
    const at = this.control.requestAt(this.index, (this.done + 1) | 0);
    const capacity = words[at + requestWord.capacity]!;
    let end = Math.max(endOf(words, at + requestWord.input), endOf(words, at + requestWord.output));
    if (capacity !== absent)
      end = Math.max(end, endOf(words, at + requestWord.rows), endOf(words, at + requestWord.receivedRows));
    // A thread may still see the old buffer after another thread grew the memory. Growing by 0 pages updates the
    // buffer.
    if (this.memory.buffer.byteLength < end) this.memory.grow(0);
    // Read the buffer only one time: after another thread has grown the memory, `buffer` is a different object over the
    // same bytes, and an in-place request would not be recognized.
    const { buffer } = this.memory;
    const tag = words[at + requestWord.tag]!;
    const kind = kindOf(tag);
    const to = words[at + requestWord.to]!;
    const from = words[at + requestWord.from]!;
    const request: { -readonly [key in keyof NextRequest]: NextRequest[key] } = {
      at,
      tag,
      kind: kind === "agreement" ? "all-gather" : kind,
      dtype: dtypes[words[at + requestWord.dtype]!]!,
      reduction: reductions[words[at + requestWord.reduction]!]!,
      input: regionAt(words, at + requestWord.input, buffer),
      output: regionAt(words, at + requestWord.output, buffer),
      root: words[at + requestWord.root]!,
    };
    if (to !== absent) request.to = to;
    if (from !== absent) request.from = from;
    if (capacity !== absent)
      request.ragged = {
        capacity,
        rows: regionAt(words, at + requestWord.rows, buffer),
        receivedRows: regionAt(words, at + requestWord.receivedRows, buffer),
      };
    return request;
  }

  /** Marks the oldest request as done, and records its number of sent bytes. The lane must be locked by this thread. */
  finish(bytesSent: number): void {
    this.floats[(this.base + laneWord.bytesSent) / 2]! += bytesSent;
    Atomics.store(this.control.words, this.base + laneWord.done, (this.done + 1) | 0);
    this.control.notify(this.control.rank, "done");
  }

  /** Waits until the executing thread makes `ready` true. */
  waitFor(ready: () => boolean, tag: number): void {
    // The executing thread detects lost peers within the timeout. After twice that time, the executing thread itself is
    // gone.
    if (!this.control.waitUntil(ready, "done", 2 * this.control.timeoutMilliseconds))
      this.control.failLost(this.control.rank, tag, "its communication thread does not respond");
    this.control.throwIfUnusable(tag);
  }
}
