import type { BlasFiles } from "@skein/blas/node";
import type { SavedFile } from "@skein/checkpoints/node";
import type { ErrorReport } from "@skein/cli/node";
import type { LinkSample } from "@skein/collectives";
import type { WorldConnection } from "@skein/collectives/node";
import type { LanePosition, PlacedLane } from "@skein/data";
import type { DamagedImage } from "@skein/data/node";
import type { Job } from "@skein/job/node";
import type { ParameterHistograms } from "@skein/report";
import type { BestSoFar, MovedLayer, RoutingJson, SampleOutput } from "@skein/run-files/node";
import type { EvaluationSums, ExchangePlan, PlanName, SampleKind, TrainingData, UpdateFigures } from "@skein/step/node";
import type { Span } from "@skein/tensor-core";
import type { BackendName } from "../backend/backend.ts";
import type { AllToAllSamples } from "./all-to-all-times.ts";
import type { PartRecordings } from "../modules/program-parts.ts";
import type { TracedModel } from "../modules/traced-model.ts";

/** Settings that all ranks of a run share, created by the controller of the run. */
export interface Assignment {
  readonly task: "train" | "measure-links";
  /** Job in which `backend: auto` is already resolved. */
  readonly job: Job;
  /** Output folder of the run, accessible to all processes. */
  readonly output: string;
  /**
   * Name of a file in `output` with which a process checks that it sees the same folder as the controller. Absent:
   * ranks do not write to the folder.
   */
  readonly mark?: string | undefined;
  /** Checkpoint from which the run resumes. Absent: a new run. */
  readonly resume?:
    | {
        readonly folder: string;
        readonly step: number;
        readonly files: readonly SavedFile[];
        readonly best?: BestSoFar | undefined;
        /**
         * Positions in the training stream after `step`, one per lane. Lanes are read concurrently, and each lane
         * provides a part of every batch.
         */
        readonly lanes?: readonly LanePosition[] | undefined;
      }
    | undefined;
  /** Plan from the checkpoint. Absent: ranks measure and plan if the job requires a plan. */
  readonly plan?: ExchangePlan | undefined;
  /** Number of completed steps at the end of the run. */
  readonly totalSteps: number;
  /** Step offset of the run, see `stepOffsetAfter`. */
  readonly stepOffset: number;
  /**
   * Trace settings: number of recorded steps, time origin in milliseconds since 1970, and interval between steps
   * recorded in detail. Absent: no trace.
   */
  readonly trace?:
    | { readonly originMilliseconds: number; readonly steps: number; readonly detailEvery: number }
    | undefined;
  /** Whether to skip evaluations and checkpoints. */
  readonly stepsOnly?: boolean | undefined;
}

/** One-way times of messages between two ranks. */
export interface PairSamples {
  readonly from: number;
  readonly to: number;
  readonly samples: readonly LinkSample[];
}

export interface MeasuredLinks {
  readonly hosts: readonly (readonly number[])[];
  readonly pairs: readonly PairSamples[];
  readonly allToAll: readonly AllToAllSamples[];
  readonly reduceSecondsPerByte: number;
}

/** Input of a thread that measures links. */
export interface LinksRankInput {
  readonly connection: WorldConnection;
  readonly module: WebAssembly.Module;
  readonly messageBytes: readonly number[];
}

/** Input of the thread of one rank. */
export interface RankInput extends Assignment {
  readonly backend: BackendName;
  readonly connection: WorldConnection;
  readonly module: WebAssembly.Module;
  /** BLAS for matrix products. Absent: only WebAssembly is used. */
  readonly blas: BlasFiles | undefined;
  /** Number of CPU threads of this rank. */
  readonly threads: number;
  readonly data: TrainingData;
  /** Digest of the samples. Absent: the samples do not come from user files. */
  readonly dataDigest: string | undefined;
  /** Traced model. Absent: the model did not come from a program. */
  readonly traced: TracedModel | undefined;
  /** Format in which samples are displayed. Absent: the job displays no samples, or the model is sharded over ranks. */
  readonly sampleKind: SampleKind | undefined;
  /** Hash of the paths, dtypes and shapes of the trained parameters. */
  readonly trainedHash: string;
  /**
   * Names of the plans that determine which tensors each rank owns, such as compressor residuals. A resumed run must
   * reuse these plans.
   */
  readonly boundPlans: readonly PlanName[];
  /** Recordings of other objects given by a program. Absent: none. */
  readonly recordings: PartRecordings | undefined;
  /** Shared memory of the `StopSignal` of this process. */
  readonly stop: SharedArrayBuffer;
}

/** Messages from a rank to the controller of the run. */
export type RankMessage =
  /** Metrics of a step, sent by rank 0. The loss is the mean over all ranks. */
  | {
      readonly type: "step";
      readonly step: number;
      /** Epoch number, from 1. */
      readonly epoch: number;
      readonly loss: number;
      readonly seconds: number;
      /** Part of `seconds` spent waiting for collectives. */
      readonly exposedSeconds: number;
      /** Part of `exposedSeconds` spent waiting for all-to-alls. Absent: steps have no all-to-alls. */
      readonly exposedAllToAllSeconds?: number;
      /** Part of `seconds` spent waiting for a batch. */
      readonly dataSeconds: number;
      /** Share of the images of rank 0's samples that came from the cache, 0 to 1. Absent: no cache. */
      readonly cacheHitRate?: number;
      /** Payload bytes sent by rank 0 during the step. */
      readonly bytesSent: number;
      /** Resident memory of rank 0's process after the step, in bytes. */
      readonly residentBytes: number | undefined;
      /**
       * Metrics of this step's parameter update. Absent with `overlap: dear`, which applies the update one step later;
       * a message of type "updated" then contains the metrics.
       */
      readonly update?: UpdateFigures | undefined;
      /** Whether the update was skipped because f16 gradients overflowed. */
      readonly skipped: boolean;
      /** Metrics that the model reports for this step, by name. */
      readonly model?: Readonly<Record<string, number>> | undefined;
    }
  /**
   * Mean duration of the last steps in seconds, and the same mean without waits for collectives. Sent by each rank at
   * intervals if there are several ranks.
   */
  | { readonly type: "paced"; readonly step: number; readonly seconds: number; readonly ownSeconds: number }
  | ({ readonly type: "updated"; readonly step: number } & UpdateFigures)
  | {
      readonly type: "evaluated";
      readonly step: number;
      readonly sums: EvaluationSums;
      readonly seconds: number;
      /** Best evaluation so far, sent only by rank 0. Absent: the run does not compare evaluations. */
      readonly best?: BestSoFar | undefined;
    }
  /**
   * Model outputs for this rank's share of the displayed held-out samples, sent before the metrics of the evaluation.
   */
  | { readonly type: "sampled"; readonly step: number; readonly samples: readonly SampleOutput[] }
  /**
   * Plan that all ranks use, sent by rank 0. `remark` is a line for the user about the parts of the plan that were made
   * in this run, or empty if there are no such parts.
   */
  | { readonly type: "planned"; readonly plan: ExchangePlan; readonly remark: string }
  /** Experts that were moved after a step, and duration of the move. Sent by rank 0. */
  | {
      readonly type: "moved";
      readonly step: number;
      readonly layers: readonly MovedLayer[];
      readonly seconds: number;
    }
  /** Indices of the experts that the tokens of all ranks chose in a step, by layer name. Sent by rank 0. */
  | { readonly type: "routed"; readonly step: number; readonly layers: Readonly<Record<string, RoutingJson>> }
  /**
   * Histograms of some parameters after a step, over all ranks, sent by rank 0. `isLast`: whether the message is the
   * last message with histograms of the step.
   */
  | {
      readonly type: "histograms";
      readonly step: number;
      readonly parameters: readonly ParameterHistograms[];
      readonly isLast: boolean;
    }
  /** A remark for the user. */
  | { readonly type: "remark"; readonly text: string }
  /** A sample that could not be decoded, and was skipped or replaced by another image. */
  | { readonly type: "damaged"; readonly image: DamagedImage }
  /**
   * The rank lacks samples or resources to continue. The rank waits for the number of the last step, which all ranks
   * complete and save.
   */
  | { readonly type: "cut-short"; readonly error: ErrorReport }
  | {
      readonly type: "saved";
      readonly step: number;
      readonly files: readonly SavedFile[];
      /** Positions in the training stream, one per lane that this rank reads. */
      readonly lanes?: readonly PlacedLane[] | undefined;
    }
  /** Measurements of this rank: all-to-alls, and links to higher ranks. */
  | { readonly type: "links"; readonly measured: MeasuredLinks }
  | { readonly type: "spans"; readonly spans: readonly Span[] }
  | {
      readonly type: "done";
      readonly step: number;
      readonly bytesSent: number;
      /** Name of the process in which the rank ran. `peakMemoryBytes` is the peak memory of the process. */
      readonly process: string;
      readonly peakMemoryBytes: number;
    }
  | { readonly type: "failed"; readonly error: ErrorReport };
