import type { DType, Reduction } from "@skein/tensor-core";

/** What the addon is asked for. The order is native/operation.h's. */
export const commandKinds = [
  "initialize",
  "duplicate",
  "finalize",
  "abort",
  "send",
  "receive",
  "all-reduce",
  "reduce-scatter",
  "all-gather",
  "all-to-all",
  "broadcast",
  "reduce",
  "barrier",
  "exchange",
] as const;
export type CommandKind = (typeof commandKinds)[number];

/** How a command ended. The order is native/operation.h's. */
export const outcomes = ["done", "failed", "mismatch", "timeout", "stopped"] as const;
export type Outcome = (typeof outcomes)[number];

/** Element types of the addon; all others travel as bytes. The order is native/operation.h's. */
export const elementTypes: readonly (DType | "bytes")[] = ["f32", "f16", "bf16", "i32", "u32", "bytes"];
/** The order is native/operation.h's. */
export const reductions: readonly Reduction[] = ["sum", "max", "min"];

/** Counts of MPI calls are C ints; what is larger is cut. Whole pages, so that parts stay aligned. */
export const largestCount: number = 2 ** 31 - 2 ** 16;

/** [id, outcome, message, values, id, …]. */
export type AnswerBatch = readonly (number | string | readonly number[] | undefined)[];

/** The native module, as native/addon.cc exports it. */
export interface MpiAddon {
  readonly family: MpiFamily;
  /** Of the headers that it was built with. */
  readonly version: string;
  /** What the loaded library says of itself. */
  library(): string;
  /**
   * Take answers in this thread; start the progress thread if it does not run. Without `onAnswers`: let this thread
   * call MPI itself, by `perform` and `drive`. Each once per thread.
   */
  open(onAnswers: ((batch: AnswerBatch) => void) | undefined, spinMicroseconds: number): void;
  /**
   * Call MPI until there are answers; look for so long, then sleep for a slice while the progress thread looks.
   * Undefined when none came.
   */
  drive(spinMicroseconds: number, sliceMicroseconds: number): AnswerBatch | undefined;
  /** Hand over a command. Its memory belongs to MPI until the answer. */
  post: PostCommand;
  /** The same, but start it in this thread. The answer comes by `drive`. */
  perform: PostCommand;
}

export interface PostCommand {
  (
    id: number,
    kind: number,
    communicator: number,
    input: Uint8Array | undefined,
    inputBytes: number,
    output: Uint8Array | undefined,
    outputBytes: number,
    count: number,
    element: number,
    reduction: number,
    peer: number,
    tag: number,
    limit: number,
    timeoutMilliseconds: number,
    agreement: number,
  ): void;
}

/** The implementations of MPI that the addon knows. */
export type MpiFamily = "open-mpi" | "mpich";
