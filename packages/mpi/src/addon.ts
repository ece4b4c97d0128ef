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
 * Maximum number of bytes per MPI call, because MPI's counts are C ints. Larger operands are split. The number is a
 * multiple of the page size, so that parts stay aligned.
 */
export const largestCount: number = 2 ** 31 - 2 ** 16;

/** Batch of responses as a flat array with four entries per response: [id, outcome, message, values, id, …]. */
export type AnswerBatch = readonly (number | string | readonly number[] | undefined)[];

/** The native module, as exported by native/addon.cc. */
export interface MpiAddon {
  readonly family: MpiFamily;
  /** MPI version of the headers used to build the addon. */
  readonly version: string;
  /** Returns the version string of the loaded MPI library. */
  library(): string;
  /**
   * Opens MPI for this thread, and starts the progress thread if it is not running. With `onAnswers`, responses are
   * passed to `onAnswers` in this thread. Without `onAnswers`, this thread calls MPI itself, with `perform` and
   * `drive`. Each thread may call this method one time with `onAnswers`, and one time without `onAnswers`.
   */
  open(onAnswers: ((batch: AnswerBatch) => void) | undefined, spinMicroseconds: number): void;
  /**
   * Calls MPI until responses are available: polls for `spinMicroseconds`, then sleeps for `sliceMicroseconds` while
   * the progress thread polls. Returns undefined if no response arrived.
   */
  drive(spinMicroseconds: number, sliceMicroseconds: number): AnswerBatch | undefined;
  /** Posts a command to the progress thread. The memory of the command belongs to MPI until the response. */
  post: PostCommand;
  /** Starts a command in this thread, unlike `post`. The response is returned by `drive`. */
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
