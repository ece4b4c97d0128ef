import { dtypes, type Reduction } from "@skein/tensor-core";
import type { CollectiveRequest, WasmMemory } from "@skein/tensor-core/backend";
import type { ControlBlock } from "../control-block/control-block.ts";
import { kindOf } from "../control-block/tag.ts";
import { laneWord, queueLength, requestWord } from "../control-block/layout.ts";

const reductions: readonly Reduction[] = ["sum", "max", "min"];
const absent = -1;

/** A request as it lies in the queue. */
export interface PostedRequest extends CollectiveRequest {
  readonly tag: number;
  /** Not to be begun before `release`. */
  readonly held?: boolean;
}

/** A request that is to be carried out next. */
export interface NextRequest extends PostedRequest {
  /** Where it lies: index of its first word. */
  readonly at: number;
}

// A region lies in a request as its address and, in the next word, its length.

const endOf = (words: Int32Array, at: number): number => (words[at]! >>> 0) + (words[at + 1]! >>> 0);

const regionAt = (words: Int32Array, at: number, memory: ArrayBufferLike): Uint8Array =>
  new Uint8Array(memory, words[at]! >>> 0, words[at + 1]! >>> 0);

/** Whether request `sequence` is among the first `done`; counts wrap around. */
const covers = (done: number, sequence: number): boolean => ((done - sequence) | 0) >= 0;

/**
 * The requests of one rank and priority, in shared memory: the rank's compute thread posts them, and the thread that
 * holds the lock carries out the next one. Requests are done in the order in which they were posted.
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

  /** Whether there is a request to be carried out, and nothing that holds it up. */
  get isDue(): boolean {
    if (this.isIdle) return false;
    const at = this.control.requestAt(this.index, (this.done + 1) | 0);
    return Atomics.load(this.control.words, at + requestWord.held) === 0;
  }

  /** Whether one more can be posted without a wait. */
  get hasRoom(): boolean {
    return this.has((this.posted + 1 - queueLength) | 0);
  }

  /** A request that was posted as held may be begun. */
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

  /** Become the thread that carries out this lane's requests, if no other is. */
  tryLock(): boolean {
    return Atomics.compareExchange(this.control.words, this.base + laneWord.lock, 0, 1) === 0;
  }

  unlock(): void {
    Atomics.store(this.control.words, this.base + laneWord.lock, 0);
    this.control.notify(this.control.rank, "done");
    if (!this.isIdle) this.announce(); // the companion may have found the lane locked
  }

  get isLocked(): boolean {
    return Atomics.load(this.control.words, this.base + laneWord.lock) === 1;
  }

  /**
   * Post a request; returns its number in this lane. Waits while the queue is full.
   */
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

  /** The number of the request that would be posted next. */
  get nextSequence(): number {
    return (this.posted + 1) | 0;
  }

  /** A request that was never posted as what `next` gives. Hold the lock of an idle lane. */
  unposted(request: PostedRequest): NextRequest {
    const at = this.control.requestAt(this.index, this.nextSequence);
    this.control.words[at + requestWord.tag] = request.tag;
    return { ...request, at };
  }

  /** Such a request is done: nobody waits for it but the thread that holds the lock, which is given back. */
  finishUnposted(bytesSent: number): void {
    const { words } = this.control;
    const sequence = this.nextSequence;
    this.floats[(this.base + laneWord.bytesSent) / 2]! += bytesSent;
    Atomics.store(words, this.base + laneWord.posted, sequence);
    Atomics.store(words, this.base + laneWord.done, sequence);
    Atomics.store(words, this.base + laneWord.lock, 0);
  }

  /** What carried out a request that is done: a code, or `undefined` once its place in the queue is another's. */
  algorithmOf(sequence: number): number | undefined {
    if (((this.posted - sequence) | 0) >= queueLength) return undefined;
    return this.control.words[this.control.requestAt(this.index, sequence) + requestWord.algorithm];
  }

  private announce(): void {
    this.control.notify(this.control.rank, "request");
    if (this.control.companionBusy) this.control.notify(this.control.rank, "message");
  }

  /**
   * The oldest request that is not done. Hold the lock. Called for each request, some of which take microseconds: makes
   * nothing but what it returns.
   */
  next(): NextRequest {
    const { words } = this.control;
    const at = this.control.requestAt(this.index, (this.done + 1) | 0);
    const capacity = words[at + requestWord.capacity]!;
    let end = Math.max(endOf(words, at + requestWord.input), endOf(words, at + requestWord.output));
    if (capacity !== absent)
      end = Math.max(end, endOf(words, at + requestWord.rows), endOf(words, at + requestWord.receivedRows));
    // A thread may still see the buffer as it was before another thread grew the memory; growing by nothing brings it
    // up to date.
    if (this.memory.buffer.byteLength < end) this.memory.grow(0);
    // Looked at once: after another thread has grown the memory it is another object over the same bytes, and a request
    // in place would not be seen as one.
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

  /** The oldest request is done, after sending so many bytes. Hold the lock. */
  finish(bytesSent: number): void {
    this.floats[(this.base + laneWord.bytesSent) / 2]! += bytesSent;
    Atomics.store(this.control.words, this.base + laneWord.done, (this.done + 1) | 0);
    this.control.notify(this.control.rank, "done");
  }

  /** Wait for what the thread that carries requests out will do. */
  waitFor(ready: () => boolean, tag: number): void {
    // That thread notices lost peers itself, within the timeout; twice that long means that it is gone.
    if (!this.control.waitUntil(ready, "done", 2 * this.control.timeoutMilliseconds))
      this.control.failLost(this.control.rank, tag, "its communication thread does not answer");
    this.control.throwIfUnusable(tag);
  }
}
