import { type Eventually, Future } from "@skein/collectives/transport";
import { type DType, InvariantError, type Reduction } from "@skein/tensor-core";
import {
  type AnswerBatch,
  type CommandKind,
  commandKinds,
  elementTypes,
  largestCount,
  type MpiAddon,
  type Outcome,
  outcomes,
  type PostCommand,
  reductions,
} from "./addon.ts";

/**
 * A command of the addon. Defaults: `dtype` bytes, `reduction` sum, `limit` `largestCount`; other fields are 0 or
 * empty.
 */
export interface Command {
  readonly kind: CommandKind;
  readonly communicator?: number;
  readonly input?: Uint8Array;
  readonly output?: Uint8Array;
  /** Number of elements of one rank's share: the count argument of the MPI call. */
  readonly count?: number;
  readonly dtype?: DType;
  readonly reduction?: Reduction;
  readonly peer?: number;
  readonly tag?: number;
  /** Maximum number of elements per MPI call. */
  readonly limit?: number;
  readonly timeoutMilliseconds?: number;
  /**
   * 32-bit hash of a collective's parameters. Before the collective begins, ranks check that they all have the same
   * hash. 0: no check.
   */
  readonly agreement?: number;
}

export interface Answer {
  readonly outcome: Outcome;
  readonly message: string;
  readonly values: readonly number[];
}

interface Pending {
  readonly resolve: (answer: Answer) => void;
  /** Command in flight. This reference keeps the memory that MPI uses alive. */
  readonly command: Command;
}

/** A pending command of a thread that polls for the response itself. */
interface Started {
  readonly id: number;
  readonly command: Command;
  answer: Answer | undefined;
}

const fieldsPerAnswer = 4;
/** Time that a thread sleeps before it checks whether its world has failed. */
const sliceMicroseconds = 1000;
const done: Answer = { outcome: "done", message: "", values: [] };

/** Posts a command to the addon. */
const postTo = (post: PostCommand, id: number, command: Command): void => {
  const { kind, communicator = 0, input, output, count = 0, dtype, reduction = "sum", peer = 0, tag = 0 } = command;
  const { limit = largestCount, timeoutMilliseconds = 0, agreement = 0 } = command;
  const element = dtype === undefined ? -1 : elementTypes.indexOf(dtype);
  post(
    id,
    commandKinds.indexOf(kind),
    communicator,
    input,
    input?.byteLength ?? 0,
    output,
    output?.byteLength ?? 0,
    count,
    element === -1 ? elementTypes.indexOf("bytes") : element,
    reductions.indexOf(reduction),
    peer,
    tag,
    limit,
    timeoutMilliseconds,
    agreement,
  );
};

/** Calls `settle` with each response of a batch. */
const settleAll = (batch: AnswerBatch, settle: (id: number, answer: Answer) => void): void => {
  for (let i = 0; i < batch.length; i += fieldsPerAnswer) {
    const [outcome, message, values] = [batch[i + 1], batch[i + 2], batch[i + 3]] as [
      number,
      string?,
      (readonly number[])?,
    ];
    const plain = outcome === 0 && values === undefined;
    settle(
      batch[i] as number,
      plain ? done : { outcome: outcomes[outcome]!, message: message ?? "", values: values ?? [] },
    );
  }
};

/** Posts commands for one JavaScript thread. Returned promises never reject; the caller interprets the outcome. */
export interface Poster {
  post(command: Command): Eventually<Answer>;
}

/**
 * Pending commands of one JavaScript thread.
 *
 * The memory of a command is kept alive until its response, and permanently after a failure, because MPI may still
 * write to the memory. Memory that JavaScript moves before the response (a transferred buffer, a growing unshared
 * WebAssembly memory) cannot be protected.
 */
export class Requests implements Poster {
  private readonly addon: MpiAddon;
  private readonly pending = new Map<number, Pending>();
  private readonly lost: Command[] = [];
  private nextId = 1;

  constructor(addon: MpiAddon, spinMicroseconds: number) {
    this.addon = addon;
    addon.open(
      (batch) =>
        settleAll(batch, (id, answer) => {
          const { resolve, command } = this.pending.get(id)!;
          this.pending.delete(id);
          if (answer.outcome !== "done") this.lost.push(command);
          resolve(answer);
        }),
      spinMicroseconds,
    );
  }

  post(command: Command): Promise<Answer> {
    const id = this.nextId++;
    postTo(this.addon.post, id, command);
    return new Promise((resolve) => this.pending.set(id, { resolve, command }));
  }
}

/**
 * Commands of a JavaScript thread that waits for each command immediately, and therefore calls MPI itself, so no thread
 * has to be woken. If no response arrives, its futures sleep for a slice in `ready` while the progress thread polls.
 * Memory is kept alive as in `Requests`.
 */
export class BlockingRequests implements Poster {
  private readonly addon: MpiAddon;
  private readonly spinMicroseconds: number;
  /** Pending commands of this thread. A list is faster than a map by id, because there are few entries. */
  private readonly underWay: Started[] = [];
  private readonly lost: Command[] = [];
  private nextId = 1;

  constructor(addon: MpiAddon, spinMicroseconds: number) {
    this.addon = addon;
    this.spinMicroseconds = spinMicroseconds;
    addon.open(undefined, spinMicroseconds);
  }

  post(command: Command): Eventually<Answer> {
    const started: Started = { id: this.nextId++, command, answer: undefined };
    postTo(this.addon.perform, started.id, command);
    this.underWay.push(started);
    let spin = this.spinMicroseconds; // Poll only once: an answer that has not arrived by then may take long.
    const ready = (): boolean => {
      if (started.answer !== undefined) return true;
      const batch = this.addon.drive(spin, sliceMicroseconds);
      if (batch === undefined) spin = 0;
      else settleAll(batch, (answered, answer) => this.settle(answered, answer));
      return started.answer !== undefined;
    };
    return new Future(
      ready,
      () => started.answer!,
      (): never => {
        throw new InvariantError("an MPI command did not answer within its own timeout");
      },
    );
  }

  private settle(id: number, answer: Answer): void {
    const at = this.underWay.findIndex((started) => started.id === id);
    const started = this.underWay[at]!;
    this.underWay.splice(at, 1);
    if (answer.outcome !== "done") this.lost.push(started.command);
    started.answer = answer;
  }
}
