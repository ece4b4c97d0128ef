import type { BlasFiles } from "@skein/blas/node";
import type { LinkSample } from "@skein/collectives";
import type { WorldConnection } from "@skein/collectives/node";
import type { LanePosition, PlacedLane } from "@skein/data";
import type { DamagedImage } from "@skein/data/node";
import type { ParameterHistograms } from "@skein/report";
import type { Span } from "@skein/tensor-core";
import type { BestSoFar } from "../evaluation/best-so-far.ts";
import type { BackendName } from "../backend/backend.ts";
import type { SavedFile } from "../checkpoint/checkpoint-part.ts";
import type { ErrorReport } from "../errors.ts";
import type { EvaluationSums } from "../evaluation/evaluation-sums.ts";
import type { RoutingJson } from "../run-files/routing-file.ts";
import type { MovedLayer } from "../run-files/moved-layer.ts";
import type { ExchangePlan, PlanName } from "../plans/exchange-plan.ts";
import type { Job } from "../job/job.ts";
import type { AllToAllSamples } from "./all-to-all-times.ts";
import type { PartRecordings } from "../modules/program-parts.ts";
import type { SampleKind } from "../task/sample-pass.ts";
import type { TrainingData } from "../task/task.ts";
import type { TracedModel } from "../modules/traced-model.ts";
import type { SampleOutput } from "../samples/sample-outputs.ts";
import type { UpdateFigures } from "../step/update-figures.ts";

/** Settings that all ranks of a run share. The controller of the run makes them. */
export interface Assignment {
  readonly task: "train" | "measure-links";
  /** Job with a settled backend. */
  readonly job: Job;
  /** Output folder of the run; all processes have access to it. */
  readonly output: string;
  /**
   * Name of a file in `output` that lets a process check that it sees the same folder as the controller. Absent: ranks
   * do not write to the folder.
   */
  readonly mark?: string | undefined;
  /** Checkpoint to resume from. */
  readonly resume?:
    | {
        readonly folder: string;
        readonly step: number;
        readonly files: readonly SavedFile[];
        readonly best?: BestSoFar | undefined;
        /** Stream lane positions. */
        readonly lanes?: readonly LanePosition[] | undefined;
      }
    | undefined;
  /** Plan of the gradient exchange from an earlier attempt. Absent: ranks measure if the job asks for it. */
  readonly plan?: ExchangePlan | undefined;
  /** Number of steps done at the end of the run. */
  readonly totalSteps: number;
  /** See `stepOffsetAfter`. */
  readonly stepOffset: number;
  /**
   * Spans of the first steps to record: number of steps, time origin in milliseconds since 1970, and period of the
   * steps that are recorded in detail.
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

/** Input of a rank's thread. */
export interface RankInput extends Assignment {
  readonly backend: BackendName;
  readonly connection: WorldConnection;
  readonly module: WebAssembly.Module;
  /** BLAS that computes products. Absent: WebAssembly only. */
  readonly blas: BlasFiles | undefined;
  /** Number of threads of this rank, on the CPU. */
  readonly threads: number;
  readonly data: TrainingData;
  /** Digest of the samples. Absent: the samples are not the user's own. */
  readonly dataDigest: string | undefined;
  /** Traced model. Absent: the model did not come from a program. */
  readonly traced: TracedModel | undefined;
  /** Form in which samples are shown. Absent: ranks share the model. */
  readonly sampleKind: SampleKind | undefined;
  /** Hash of the paths, dtypes and shapes of the trained parameters. */
  readonly trainedHash: string;
  /** Parts of a plan that the layout of single ranks' state depends on. */
  readonly boundPlans: readonly PlanName[];
  /** Recordings of other parts that a program gave. */
  readonly recordings: PartRecordings | undefined;
  /** Shared words of `StopSignal`. */
  readonly stop: SharedArrayBuffer;
}

/** Messages from a rank to the controller of the run. */
export type RankMessage =
  /** From rank 0: figures of a step. The loss is the mean over all ranks. */
  | {
      readonly type: "step";
      readonly step: number;
      /** Counted from 1. */
      readonly epoch: number;
      readonly loss: number;
      readonly seconds: number;
      /** Part of `seconds` spent waiting for collectives. */
      readonly exposedSeconds: number;
      /** Part of `exposedSeconds` spent waiting for all-to-alls. Absent: steps have no all-to-alls. */
      readonly exposedAllToAllSeconds?: number;
      /** Part of `seconds` spent waiting for a batch. */
      readonly dataSeconds: number;
      /** Share of the images of rank 0's batch part that came from the cache, 0 to 1. Absent: no cache. */
      readonly cacheHitRate?: number;
      /** Payload that rank 0 has sent during the step, bytes. */
      readonly bytesSent: number;
      /** Resident memory of rank 0's process after the step, bytes. */
      readonly residentBytes: number | undefined;
      /**
       * Figures of the update that the step made. With `overlap: dear`, a separate message brings them a step later.
       */
      readonly update?: UpdateFigures | undefined;
      /** Whether the update was skipped because f16 gradients overflowed. */
      readonly skipped: boolean;
      /** Figures of the model for this step, by name. */
      readonly model?: Readonly<Record<string, number>> | undefined;
    }
  /** From each of several ranks, at intervals: mean duration of its last steps. */
  | { readonly type: "paced"; readonly step: number; readonly seconds: number; readonly ownSeconds: number }
  | ({ readonly type: "updated"; readonly step: number } & UpdateFigures)
  | {
      readonly type: "evaluated";
      readonly step: number;
      readonly sums: EvaluationSums;
      readonly seconds: number;
      /** From rank 0: comparison with earlier evaluations. Absent: nothing depends on the comparison. */
      readonly best?: BestSoFar | undefined;
    }
  /** Model outputs for this rank's share of some held-out samples, sent before the figures of that evaluation. */
  | { readonly type: "sampled"; readonly step: number; readonly samples: readonly SampleOutput[] }
  /** From rank 0: the plan that all ranks use, and a line for the user if any part of the plan was made in this run. */
  | { readonly type: "planned"; readonly plan: ExchangePlan; readonly remark: string }
  /** From rank 0: experts that were moved after a step, and the cost of the move. */
  | {
      readonly type: "moved";
      readonly step: number;
      readonly layers: readonly MovedLayer[];
      readonly seconds: number;
    }
  /** From rank 0: experts that the tokens of all ranks chose in a step, by layer name. */
  | { readonly type: "routed"; readonly step: number; readonly layers: Readonly<Record<string, RoutingJson>> }
  /** From rank 0: histograms of some parameters of all ranks after a step, and whether they are the last ones. */
  | {
      readonly type: "histograms";
      readonly step: number;
      readonly parameters: readonly ParameterHistograms[];
      readonly isLast: boolean;
    }
  /** A remark for the user. */
  | { readonly type: "remark"; readonly text: string }
  /** An image that cannot be decoded and was replaced by another image. */
  | { readonly type: "damaged"; readonly image: DamagedImage }
  /**
   * A rank lacks samples or resources to continue. It waits for the number of the last step that all ranks do and save.
   */
  | { readonly type: "cut-short"; readonly error: ErrorReport }
  | {
      readonly type: "saved";
      readonly step: number;
      readonly files: readonly SavedFile[];
      /** Positions of the stream lanes that this rank reads. */
      readonly lanes?: readonly PlacedLane[] | undefined;
    }
  /** From rank 0, which has measured the links of all pairs. */
  | { readonly type: "links"; readonly measured: MeasuredLinks }
  | { readonly type: "spans"; readonly spans: readonly Span[] }
  | {
      readonly type: "done";
      readonly step: number;
      readonly bytesSent: number;
      /** Name of the process that the rank ran in, and the peak memory of that process. */
      readonly process: string;
      readonly peakMemoryBytes: number;
    }
  | { readonly type: "failed"; readonly error: ErrorReport };
