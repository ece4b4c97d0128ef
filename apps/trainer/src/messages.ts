import type { ThreadConnection } from "@skein/collectives/node";
import type { Records } from "@skein/data";
import type { Span } from "@skein/tensor-core";
import type { BackendName } from "./backend.ts";
import type { SavedFile } from "./checkpoint.ts";
import type { ErrorReport } from "./errors.ts";
import type { Job } from "./job.ts";

/** What a rank's thread is started with. */
export interface RankInput {
  readonly job: Job;
  readonly backend: BackendName;
  readonly connection: ThreadConnection;
  readonly module: WebAssembly.Module;
  readonly train: Records;
  readonly test: Records;
  readonly totalSteps: number;
  /** Output folder of the run. */
  readonly output: string;
  /** Folder of a checkpoint to go on from, and its step. */
  readonly resume?: { readonly folder: string; readonly step: number } | undefined;
  /** Milliseconds since 1970 at which traces begin; no trace without it. */
  readonly traceOrigin?: number | undefined;
  /** Words of `StopSignal`. */
  readonly stop: SharedArrayBuffer;
  /** For tests: lose the WebGPU device before this step. */
  readonly loseDeviceAt?: number | undefined;
}

/** What a rank tells the main thread. */
export type RankMessage =
  /** Rank 0 only: the loss is the mean of all ranks. */
  | {
      readonly type: "step";
      readonly step: number;
      readonly epoch: number;
      readonly loss: number;
      readonly seconds: number;
      /** The update was left out because f16 gradients overflowed. */
      readonly skipped: boolean;
    }
  | {
      readonly type: "evaluated";
      readonly step: number;
      readonly correct: number;
      readonly lossSum: number;
      readonly count: number;
      readonly seconds: number;
    }
  | { readonly type: "saved"; readonly step: number; readonly files: readonly SavedFile[] }
  | { readonly type: "spans"; readonly spans: readonly Span[] }
  | { readonly type: "done"; readonly step: number; readonly bytesSent: number }
  | { readonly type: "failed"; readonly error: ErrorReport };
