import { bytesPerElement, type CollectiveRequest, type DType, InvariantError } from "@skein/tensor-core";
import type { Arithmetic } from "./arithmetic.ts";
import type { ElementRange, Region, Schedule, Step } from "./schedule.ts";
import type { Eventually, Loan, Transport } from "./transport/transport.ts";

/** What a schedule works on: the request's memory and meaning, a tag that all ranks share, and scratch memory if the schedule wants it. */
export interface Execution extends Pick<CollectiveRequest, "input" | "output" | "dtype" | "reduction"> {
  readonly tag: number;
  readonly scratch?: Uint8Array;
}

type Receive = Extract<Step, { action: "receive" }>;
type ReduceStep = Extract<Receive, { combine: "reduce" }>;
type Wait<T> = Generator<Promise<unknown>, T, unknown>;

function* settled<T>(value: Eventually<T>): Wait<T> {
  return value instanceof Promise ? ((yield value) as T) : value;
}

/**
 * Walk a schedule. Yields wherever the transport answers with a promise, so that one walk serves transports that block and
 * transports that cannot. Before a range is written, every loan of it has come home; at the end, all have.
 */
export function* walk(schedule: Schedule, execution: Execution, transport: Transport, arithmetic: Arithmetic): Wait<void> {
  const { dtype, reduction = "sum", tag } = execution;
  const width = bytesPerElement[dtype];
  const inPlace = execution.input.byteOffset === execution.output.byteOffset && execution.input.buffer === execution.output.buffer;
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

  let loans: { readonly loan: Loan; readonly range: ElementRange }[] = [];
  function* comeHome(concerned: (loan: { loan: Loan; range: ElementRange }) => boolean): Wait<void> {
    for (const entry of loans.filter(concerned)) {
      yield* settled(transport.whenReturned(entry.loan));
      loans = loans.filter((other) => other !== entry);
    }
  }
  const writing = (range: ElementRange): Wait<void> => comeHome((entry) => overlap(entry.range, range));

  function* reduce(steps: readonly ReduceStep[]): Wait<void> {
    const { target, own } = steps[0]!;
    const parts = [{ rank: transport.rank, bytes: bytesOf(own) }];
    const borrowed: Uint8Array[] = [];
    for (const step of steps) {
      const bytes = yield* settled(transport.receive(step.peer, tag, target.count * width));
      parts.push({ rank: step.peer, bytes });
      if (step.returned === true && transport.sharesMemory) borrowed.push(bytes);
    }
    parts.sort((a, b) => a.rank - b.rank);
    yield* writing(target);
    arithmetic.combine(
      dtype,
      reduction,
      [bytesOf(target), ...borrowed],
      parts.map((part) => part.bytes),
    );
    for (const step of steps) if (step.returned !== true || !transport.sharesMemory) transport.release(step.peer);
  }

  for (const round of schedule.rounds) {
    for (const step of round) {
      if (step.action === "copy") {
        if (place(step.source) === place(step.target) && step.source.offset === step.target.offset) continue;
        yield* writing(step.target);
        arithmetic.copy(bytesOf(step.target), bytesOf(step.source));
      } else if (step.action === "clear") bytesOf(step.target).fill(0);
    }
    for (const step of round) {
      if (step.action !== "send") continue;
      if (step.returned === true && transport.sharesMemory) transport.release(step.peer);
      else loans.push({ range: step.source, loan: yield* settled(transport.send(step.peer, tag, bytesOf(step.source))) });
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
      } else if (step.returned === true && transport.sharesMemory) {
        yield* comeHome((entry) => entry.loan.peer === step.peer && overlap(entry.range, step.target));
      } else {
        const bytes = yield* settled(transport.receive(step.peer, tag, step.target.count * width));
        yield* writing(step.target);
        arithmetic.copy(bytesOf(step.target), bytes);
        transport.release(step.peer);
      }
    }
  }
  yield* comeHome(() => true);
}

/** Walk a schedule over a transport that blocks. */
export const executeBlocking = (schedule: Schedule, execution: Execution, transport: Transport, arithmetic: Arithmetic): void => {
  if (walk(schedule, execution, transport, arithmetic).next().done !== true) {
    throw new InvariantError(`a transport that cannot block was given to executeBlocking (${schedule.algorithm})`);
  }
};

/** Walk a schedule over any transport. */
export const execute = async (schedule: Schedule, execution: Execution, transport: Transport, arithmetic: Arithmetic): Promise<void> => {
  const steps = walk(schedule, execution, transport, arithmetic);
  let answer: unknown;
  for (;;) {
    const { done, value } = steps.next(answer);
    if (done === true) return;
    answer = await value;
  }
};

/** Scratch bytes that a schedule wants. */
export const scratchBytes = (schedule: Schedule, dtype: DType): number => schedule.scratchElements * bytesPerElement[dtype];
