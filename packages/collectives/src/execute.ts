import { bytesPerElement, type DType, InvariantError } from "@skein/tensor-core";
import type { CollectiveRequest } from "@skein/tensor-core/backend";
import type { Arithmetic } from "./arithmetic.ts";
import type { ElementRange, Region, CollectiveSchedule, Step } from "./schedule.ts";
import { type Eventually, Future, isLater, type SendHandle, type Transport } from "./transport/transport.ts";

/**
 * Inputs for the execution of a schedule: operands, dtype and reduction of the request, a tag that is equal on all
 * ranks, and scratch memory if the schedule needs any.
 */
export interface Execution extends Pick<CollectiveRequest, "input" | "output" | "dtype" | "reduction"> {
  readonly tag: number;
  readonly scratch?: Uint8Array;
}

type Receive = Extract<Step, { action: "receive" }>;
type ReduceStep = Extract<Receive, { combine: "reduce" }>;
/**
 * Resumable execution, as a generator. The generator yields a promise or a future if it has to wait. Resume the
 * generator with the value of the promise, or when the `Future` is ready.
 */
export type Walk<T> = Generator<Promise<unknown> | Future<unknown>, T, unknown>;

/** Pauses until a value is available, and returns the value. */
export function* settled<T>(value: Eventually<T>): Walk<T> {
  if (value instanceof Future) {
    while (!value.ready()) yield value;
    return value.take();
  }
  return value instanceof Promise ? ((yield value) as T) : value;
}

/**
 * Executes a schedule. Pauses whenever the transport returns a promise or a future, so that the same code works for
 * blocking threads, for threads that execute several requests concurrently, and for networks. Before a memory range is
 * overwritten, all sends of the range have completed. At the end, all sends have completed.
 */
export function* walk(
  schedule: CollectiveSchedule,
  execution: Execution,
  transport: Transport,
  arithmetic: Arithmetic,
): Walk<void> {
  const { dtype, reduction = "sum", tag } = execution;
  const width = bytesPerElement[dtype];
  const inPlace =
    execution.input.byteOffset === execution.output.byteOffset && execution.input.buffer === execution.output.buffer;
  const place = (range: ElementRange): Region => (inPlace && range.region === "input" ? "output" : range.region);
  const overlap = (a: ElementRange, b: ElementRange): boolean =>
    place(a) === place(b) && a.offset < b.offset + b.count && b.offset < a.offset + a.count;
  const memory: Readonly<Record<Region, Uint8Array | undefined>> = {
    input: execution.input,
    output: execution.output,
    scratch: execution.scratch,
  };
  const bytesOf = ({ region, offset, count }: ElementRange): Uint8Array => {
    const bytes = memory[region];
    if (bytes === undefined || bytes.byteLength < (offset + count) * width) {
      throw new InvariantError(
        `${schedule.algorithm} reads elements ${offset} to ${offset + count} of ${region}, which has ${bytes?.byteLength ?? 0} bytes`,
      );
    }
    return bytes.subarray(offset * width, (offset + count) * width);
  };

  // `yield*` creates a generator, which takes a large part of the time of a small collective. Therefore `walk` uses
  // `yield*` only for values that are not available immediately.
  const sends: { readonly handle: SendHandle; readonly range: ElementRange }[] = [];
  /**
   * Waits for pending sends to `peer` whose ranges overlap `range`. Without `range`, waits for sends of all ranges.
   * Without `peer`, waits for sends to all peers.
   */
  function* sendsDone(range?: ElementRange, peer?: number): Walk<void> {
    for (let i = 0; i < sends.length; ) {
      const entry = sends[i]!;
      if ((range === undefined || overlap(entry.range, range)) && (peer === undefined || entry.handle.peer === peer)) {
        const sent = transport.whenSent(entry.handle);
        if (isLater(sent)) yield* settled(sent);
        sends.splice(i, 1);
      } else i++;
    }
  }

  function* reduce(steps: readonly ReduceStep[]): Walk<void> {
    const { target, own } = steps[0]!;
    const parts = [{ rank: transport.rank, bytes: bytesOf(own) }];
    const borrowed: Uint8Array[] = [];
    for (const step of steps) {
      const answer = transport.receive(step.peer, tag, target.count * width);
      const bytes = isLater(answer) ? yield* settled(answer) : answer;
      parts.push({ rank: step.peer, bytes });
      if (step.returned === true && transport.sharesMemoryWith(step.peer)) borrowed.push(bytes);
    }
    parts.sort((a, b) => a.rank - b.rank);
    if (sends.length > 0) yield* sendsDone(target);
    arithmetic.combine(
      dtype,
      reduction,
      [bytesOf(target), ...borrowed],
      parts.map((part) => part.bytes),
    );
    for (const step of steps)
      if (step.returned !== true || !transport.sharesMemoryWith(step.peer)) transport.release(step.peer);
  }

  for (const round of schedule.rounds) {
    for (const step of round) {
      if (step.action === "copy") {
        if (place(step.source) === place(step.target) && step.source.offset === step.target.offset) continue;
        if (sends.length > 0) yield* sendsDone(step.target);
        arithmetic.copy(bytesOf(step.target), bytesOf(step.source));
      } else if (step.action === "clear") {
        if (sends.length > 0) yield* sendsDone(step.target);
        bytesOf(step.target).fill(0);
      } else if (step.action === "fold") {
        if (sends.length > 0) yield* sendsDone(step.target);
        arithmetic.combine(dtype, reduction, [bytesOf(step.target)], step.sources.map(bytesOf));
      }
    }
    for (const step of round) {
      if (step.action !== "send") continue;
      if (step.returned === true && transport.sharesMemoryWith(step.peer)) transport.release(step.peer);
      else {
        const sent = transport.send(step.peer, tag, bytesOf(step.source));
        sends.push({ range: step.source, handle: isLater(sent) ? yield* settled(sent) : sent });
      }
    }
    const receives = round.filter((step): step is Receive => step.action === "receive");
    for (let i = 0; i < receives.length; i++) {
      const step = receives[i]!;
      if (step.combine === "reduce") {
        const together = receives
          .slice(i)
          .filter((other): other is ReduceStep => other.combine === "reduce" && overlap(other.target, step.target));
        yield* reduce(together);
        i += together.length - 1;
      } else if (step.returned === true && transport.sharesMemoryWith(step.peer)) {
        if (sends.length > 0) yield* sendsDone(step.target, step.peer);
      } else if (transport.receiveInto !== undefined && !sends.some((entry) => overlap(entry.range, step.target))) {
        // If the target memory is still being sent, waiting for the send could deadlock: the send waits until the peer
        // receives, and the peer may wait for this rank in the same way. Therefore receive into other memory and copy.
        const landed = transport.receiveInto(step.peer, tag, bytesOf(step.target));
        if (isLater(landed)) yield* settled(landed);
      } else {
        const answer = transport.receive(step.peer, tag, step.target.count * width);
        const bytes = isLater(answer) ? yield* settled(answer) : answer;
        if (sends.length > 0) yield* sendsDone(step.target);
        arithmetic.copy(bytesOf(step.target), bytes);
        transport.release(step.peer);
      }
    }
  }
  if (sends.length > 0) yield* sendsDone();
}

const requireFuture = <T>(later: Promise<T> | Future<T>): Future<T> => {
  if (later instanceof Future) return later;
  throw new InvariantError("a thread that blocks was given a transport that returns promises");
};

/**
 * Runs a walk (a resumable execution) to its end in this thread, and returns its result.
 *
 * @param wait blocks until a future is ready. Another thread completes the future.
 */
export const runWalkBlocking = <T>(walk: Walk<T>, wait: (future: Future<unknown>) => void): T => {
  for (;;) {
    const { done, value } = walk.next();
    if (done === true) return value;
    wait(requireFuture(value));
  }
};

/** Blocks until a promise or future is ready, and returns its value. */
export const settleBlocking = <T>(later: Promise<T> | Future<T>, wait: (future: Future<unknown>) => void): T => {
  const future = requireFuture(later);
  while (!future.ready()) wait(future);
  return future.take();
};

/**
 * Runs a walk (a resumable execution) to its end without blocking the thread, and resolves with its result.
 *
 * @param wait returns a promise that resolves when a future is ready. Another thread completes the future.
 */
export const runWalk = async <T>(walk: Walk<T>, wait?: (future: Future<unknown>) => Promise<void>): Promise<T> => {
  let answer: unknown;
  for (;;) {
    const { done, value } = walk.next(answer);
    if (done === true) return value;
    if (!(value instanceof Future)) answer = await value;
    else if (wait !== undefined) await wait(value);
    else throw new InvariantError("a walk without a wait function was given a transport that returns futures");
  }
};

/** Executes a schedule over a transport between threads. Blocks until the schedule has completed. */
export const executeBlocking = (
  schedule: CollectiveSchedule,
  execution: Execution,
  transport: Transport,
  arithmetic: Arithmetic,
  wait: (future: Future<unknown>) => void,
): void => runWalkBlocking(walk(schedule, execution, transport, arithmetic), wait);

/**
 * Executes a schedule over any transport that returns values and promises.
 *
 * @example
 * ```ts
 * const schedule = (rank: number) => ringAllReduce.schedule({ rank, worldSize: 2, elementCount: 4 });
 * const vectors = createMemoryWorld(2).map(async (transport) => {
 *   const vector = Int32Array.of(1, 2, 3, 4);
 *   const bytes = new Uint8Array(vector.buffer);
 *   const execution = { input: bytes, output: bytes, dtype: "i32", tag: 1 } as const;
 *   await execute(schedule(transport.rank), execution, transport, plainArithmetic());
 *   return [...vector];
 * });
 * console.log(await Promise.all(vectors)); // [[2, 4, 6, 8], [2, 4, 6, 8]]
 * ```
 */
export const execute = (
  schedule: CollectiveSchedule,
  execution: Execution,
  transport: Transport,
  arithmetic: Arithmetic,
): Promise<void> => runWalk(walk(schedule, execution, transport, arithmetic));

/**
 * Returns the scratch memory that a schedule needs, in bytes.
 *
 * @example
 * ```ts
 * console.log(scratchBytes(ringAllReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8 }), "f32") >= 0); // true
 * ```
 */
export const scratchBytes = (schedule: CollectiveSchedule, dtype: DType): number =>
  schedule.scratchElements * bytesPerElement[dtype];
