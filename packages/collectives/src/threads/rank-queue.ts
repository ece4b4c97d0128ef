import { bytesPerElement, type CollectiveRequest, dtypes, InvariantError, type Reduction } from "@skein/tensor-core";
import type { Arithmetic } from "../arithmetic.ts";
import { CollectiveError } from "../errors.ts";
import { executeBlocking } from "../execute.ts";
import { plainArithmetic } from "../plain-arithmetic.ts";
import { type Schedule, sentElements } from "../schedule.ts";
import { selectAlgorithm } from "../select.ts";
import { ThreadTransport } from "../transport/thread-transport.ts";
import { wasmArithmetic } from "../wasm-arithmetic.ts";
import {
  Control,
  kinds,
  nameOf,
  queueAt,
  queueLength,
  queueWord,
  requestAt,
  requestWord,
  tagOf,
  type ThreadConnection,
} from "./control.ts";

const reductions: readonly Reduction[] = ["sum", "max", "min"];
const absent = -1;

/** `n` of the request table. */
const elementsOf = (request: CollectiveRequest, worldSize: number): number => {
  const elements = request.input.byteLength / bytesPerElement[request.dtype];
  return request.kind === "reduce-scatter" || request.kind === "all-to-all" ? elements / worldSize : elements;
};

/** Whether request `sequence` is among the first `done`; counts wrap around. */
export const covers = (done: number, sequence: number): boolean => ((done - sequence) | 0) >= 0;

/**
 * The requests of one rank, in shared memory: the rank's compute thread posts them, and any thread of the rank that holds the lock
 * carries out the next one. Requests are done in the order in which they were posted.
 */
export class RankQueue {
  readonly control: Control;
  private readonly memory: WebAssembly.Memory;
  private readonly transport: ThreadTransport;
  private readonly arithmetic: Arithmetic;
  private readonly base: number;
  private readonly bytesSentIndex: number;
  private readonly floats: Float64Array;
  private readonly schedules = new Map<string, Schedule>();

  constructor(connection: ThreadConnection) {
    this.control = new Control(connection);
    this.memory = connection.memory;
    this.transport = new ThreadTransport(this.control, connection.memory);
    this.arithmetic = connection.kernels === "none" ? plainArithmetic() : wasmArithmetic(connection.kernels, connection.memory);
    this.base = queueAt(connection.worldSize, connection.rank);
    this.floats = new Float64Array(connection.control);
    this.bytesSentIndex = (this.base + queueWord.bytesSent) / 2;
  }

  /** Post a request; returns its sequence number, from 1. Waits while the queue is full. */
  post(request: CollectiveRequest): number {
    const { words } = this.control;
    const sequence = (this.posted + 1) | 0;
    for (let { done } = this; !covers(done, (sequence - queueLength) | 0); done = this.done)
      this.waitWhileDone(done, tagOf(sequence, request.kind));
    const at = requestAt(this.base, sequence);
    words[at + requestWord.kind] = kinds.indexOf(request.kind);
    words[at + requestWord.dtype] = dtypes.indexOf(request.dtype);
    words[at + requestWord.reduction] = reductions.indexOf(request.reduction ?? "sum");
    words[at + requestWord.input] = request.input.byteOffset;
    words[at + requestWord.inputBytes] = request.input.byteLength;
    words[at + requestWord.output] = request.output.byteOffset;
    words[at + requestWord.outputBytes] = request.output.byteLength;
    words[at + requestWord.root] = request.root ?? 0;
    words[at + requestWord.to] = request.to ?? absent;
    words[at + requestWord.from] = request.from ?? absent;
    Atomics.store(words, this.base + queueWord.posted, sequence);
    Atomics.notify(words, this.base + queueWord.posted);
    return sequence;
  }

  get posted(): number {
    return Atomics.load(this.control.words, this.base + queueWord.posted);
  }

  get done(): number {
    return Atomics.load(this.control.words, this.base + queueWord.done);
  }

  bytesSent(): number {
    return this.floats[this.bytesSentIndex]!;
  }

  /** Become the thread that carries out requests, if no other is. */
  tryLock(): boolean {
    return Atomics.compareExchange(this.control.words, this.base + queueWord.lock, 0, 1) === 0;
  }

  unlock(): void {
    Atomics.store(this.control.words, this.base + queueWord.lock, 0);
    Atomics.notify(this.control.words, this.base + queueWord.lock);
  }

  waitForUnlock(): void {
    this.control.waitForChange(this.base + queueWord.lock, 1);
  }

  waitWhilePosted(seen: number): void {
    this.control.waitForChange(this.base + queueWord.posted, seen, Infinity);
  }

  waitWhileDone(seen: number, tag: number): void {
    // The thread that carries the request out notices lost peers itself, within the timeout; twice that long means that it is gone.
    if (!this.control.waitForChange(this.base + queueWord.done, seen, 2 * this.control.timeoutMilliseconds)) {
      this.control.fail("lost", this.control.rank, tag, 0);
    }
    this.control.throwIfUnusable(tag);
  }

  /** Carry out the next posted request. Hold the lock. */
  runNext(): void {
    const sequence = (this.done + 1) | 0;
    const request = this.read(sequence);
    const tag = tagOf(sequence, request.kind);
    this.control.throwIfUnusable(tag);
    const schedule = this.scheduleOf(request);
    try {
      executeBlocking(schedule, { ...request, tag }, this.transport, this.arithmetic);
    } catch (error) {
      if (!(error instanceof CollectiveError)) this.control.fail("failed", this.control.rank, tag, 0);
      throw error;
    }
    this.floats[this.bytesSentIndex]! += sentElements(schedule) * bytesPerElement[request.dtype];
    Atomics.store(this.control.words, this.base + queueWord.done, sequence);
    Atomics.notify(this.control.words, this.base + queueWord.done);
  }

  private read(sequence: number): CollectiveRequest {
    const at = requestAt(this.base, sequence);
    const word = (name: keyof typeof requestWord): number => this.control.words[at + requestWord[name]]!;
    const region = (address: number, bytes: number): Uint8Array => new Uint8Array(this.memory.buffer, address >>> 0, bytes >>> 0);
    return {
      kind: kinds[word("kind")]!,
      dtype: dtypes[word("dtype")]!,
      reduction: reductions[word("reduction")]!,
      input: region(word("input"), word("inputBytes")),
      output: region(word("output"), word("outputBytes")),
      root: word("root"),
      ...(word("to") !== absent && { to: word("to") }),
      ...(word("from") !== absent && { from: word("from") }),
    };
  }

  /** Training repeats the same few requests, so schedules are kept. */
  private scheduleOf(request: CollectiveRequest): Schedule {
    const { rank, worldSize } = this.control;
    const { kind, dtype, root, to, from } = request;
    const elementCount = elementsOf(request, worldSize);
    const key = `${kind} ${elementCount * bytesPerElement[dtype]} ${dtype} ${root} ${to} ${from}`;
    const known = this.schedules.get(key);
    if (known !== undefined) return known;
    const byteLength = Math.max(request.input.byteLength, request.output.byteLength);
    const algorithm = selectAlgorithm({ kind, worldSize, byteLength, sharesMemory: true });
    const schedule = algorithm.schedule({
      rank,
      worldSize,
      elementCount,
      ...(root !== undefined && { root }),
      ...(to !== undefined && { to }),
      ...(from !== undefined && { from }),
    });
    if (schedule.scratchElements > 0)
      throw new InvariantError(
        `${schedule.algorithm} wants scratch memory, which thread ranks do not have; ${nameOf(tagOf(0, kind))} needs another algorithm`,
      );
    this.schedules.set(key, schedule);
    return schedule;
  }
}
