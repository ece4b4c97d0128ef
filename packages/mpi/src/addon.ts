import type { DType, Reduction } from "@skein/tensor-core";

/** Kinds of commands of the addon, in the order of native/operation.h. */
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

/** Outcomes of a command, in the order of native/operation.h. */
export const outcomes = ["done", "failed", "mismatch", "timeout", "stopped"] as const;
export type Outcome = (typeof outcomes)[number];

/** Element types of the addon, in the order of native/operation.h. Other dtypes are sent as bytes. */
export const elementTypes: readonly (DType | "bytes")[] = ["f32", "f16", "bf16", "i32", "u32", "bytes"];
/** Reductions, in the order of native/operation.h. */
export const reductions: readonly Reduction[] = ["sum", "max", "min"];

/**
 * Maximum bytes of one MPI call, whose counts are C ints; larger operands are split. Whole pages, so that parts stay
 * aligned.
 */
export const largestCount: number = 2 ** 31 - 2 ** 16;

/** [id, outcome, message, values, id, …]. */
export type AnswerBatch = readonly (number | string | readonly number[] | undefined)[];

/** The native module, as exported by native/addon.cc. */
export interface MpiAddon {
  readonly family: MpiFamily;
  /** MPI version of the headers with which it was built. */
  readonly version: string;
  /** Returns the version string of the loaded MPI library. */
  library(): string;
  /**
   * Delivers answers to this thread, and starts the progress thread if it does not run. Without `onAnswers`, this
   * thread calls MPI itself, by `perform` and `drive`. Call each form once per thread.
   */
  open(onAnswers: ((batch: AnswerBatch) => void) | undefined, spinMicroseconds: number): void;
  /**
   * Calls MPI until there are answers: polls for `spinMicroseconds`, then sleeps for `sliceMicroseconds` while the
   * progress thread polls. Returns undefined if no answer came.
   */
  drive(spinMicroseconds: number, sliceMicroseconds: number): AnswerBatch | undefined;
  /** Posts a command to the progress thread. Its memory belongs to MPI until the answer. */
  post: PostCommand;
  /** Like `post`, but starts the command in this thread. The answer comes from `drive`. */
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

/** MPI implementations that the addon supports. */
export type MpiFamily = "open-mpi" | "mpich";
