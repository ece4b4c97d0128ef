import type { DType, Reduction } from "@skein/tensor-core";
import {
  type CommandKind,
  commandKinds,
  elementTypes,
  largestCount,
  type MpiAddon,
  type Outcome,
  outcomes,
  reductions,
} from "./addon.ts";

/** A command for the progress thread. What is left out is 0 or nothing. */
export interface Command {
  readonly kind: CommandKind;
  readonly communicator?: number;
  readonly input?: Uint8Array;
  readonly output?: Uint8Array;
  /** Elements of one rank's share, as MPI counts them. */
  readonly count?: number;
  readonly dtype?: DType;
  readonly reduction?: Reduction;
  readonly peer?: number;
  readonly tag?: number;
  /** Most elements of one MPI call. */
  readonly limit?: number;
  readonly timeoutMilliseconds?: number;
  /** Of a collective: 32 bits that all ranks must have alike, compared before it begins. Not compared when 0. */
  readonly agreement?: number;
}

export interface Answer {
  readonly outcome: Outcome;
  readonly message: string;
  readonly values: readonly number[];
}

interface Pending {
  readonly resolve: (answer: Answer) => void;
  /** Keeps the memory that MPI works on. */
  readonly command: Command;
}

const fieldsPerAnswer = 4;
const done: Answer = { outcome: "done", message: "", values: [] };

/**
 * The commands of one JavaScript thread that MPI works on. A promise never rejects: what an outcome means is the
 * caller's to say.
 *
 * Memory of a command is kept alive until its answer, and for ever after a failure, because MPI may still write there.
 * Memory that JavaScript moves meanwhile (a buffer that is transferred, a WebAssembly memory that grows without being
 * shared) cannot be guarded.
 */
export class Requests {
  private readonly addon: MpiAddon;
  private readonly pending = new Map<number, Pending>();
  private readonly lost: Command[] = [];
  private nextId = 1;

  constructor(addon: MpiAddon, spinMicroseconds: number) {
    this.addon = addon;
    addon.open((batch) => this.settle(batch), spinMicroseconds);
  }

  post(command: Command): Promise<Answer> {
    const { kind, communicator = 0, input, output, count = 0, dtype, reduction = "sum", peer = 0, tag = 0 } = command;
    const { limit = largestCount, timeoutMilliseconds = 0, agreement = 0 } = command;
    const id = this.nextId++;
    const element = dtype === undefined ? -1 : elementTypes.indexOf(dtype);
    this.addon.post(
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
    return new Promise((resolve) => this.pending.set(id, { resolve, command }));
  }

  private settle(batch: readonly (number | string | readonly number[] | undefined)[]): void {
    for (let i = 0; i < batch.length; i += fieldsPerAnswer) {
      const [id, outcome, message, values] = batch.slice(i, i + fieldsPerAnswer) as [
        number,
        number,
        string?,
        (readonly number[])?,
      ];
      const { resolve, command } = this.pending.get(id)!;
      this.pending.delete(id);
      if (outcomes[outcome] !== "done") this.lost.push(command);
      if (outcome === 0 && values === undefined) resolve(done);
      else resolve({ outcome: outcomes[outcome]!, message: message ?? "", values: values ?? [] });
    }
  }
}
