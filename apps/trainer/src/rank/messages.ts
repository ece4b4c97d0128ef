import type { BlasPlace } from "@skein/blas/node";
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

/** What all ranks of a run agree on. The controller of the run makes it. */
export interface Assignment {
  readonly task: "train" | "measure-links";
  /** With its backend settled. */
  readonly job: Job;
  /** Output folder of the run; all processes reach it. */
  readonly output: string;
  /** A file in it, by which a process knows that it sees the same folder as the controller; where ranks write there. */
  readonly mark?: string | undefined;
  /** A checkpoint to go on from. */
  readonly resume?:
    | {
        readonly folder: string;
        readonly step: number;
        readonly files: readonly SavedFile[];
        readonly best?: BestSoFar | undefined;
        /** Where lanes of a stream stand. */
        readonly lanes?: readonly LanePosition[] | undefined;
      }
    | undefined;
  /**
   * What an earlier attempt has measured and decided about the exchange of gradients; else ranks measure anew, if the
   * job wants it.
   */
  readonly plan?: ExchangePlan | undefined;
  /** Steps done when the run is over. */
  readonly totalSteps: number;
  /** See `stepOffsetAfter`. */
  readonly stepOffset: number;
  /**
   * Spans of the first steps are kept: how many, the milliseconds since 1970 from which their times count, and of how
   * many steps one has more than its own span.
   */
  readonly trace?:
    | { readonly originMilliseconds: number; readonly steps: number; readonly detailEvery: number }
    | undefined;
  /** Evaluate and save nothing. */
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

/** What a thread that measures links is started with. */
export interface LinksRankInput {
  readonly connection: WorldConnection;
  readonly module: WebAssembly.Module;
  readonly messageBytes: readonly number[];
}

/** What a rank's thread is started with. */
export interface RankInput extends Assignment {
  readonly backend: BackendName;
  readonly connection: WorldConnection;
  readonly module: WebAssembly.Module;
  /** What products run on, where that is not WebAssembly alone. */
  readonly blas: BlasPlace | undefined;
  /** Of this rank, on the CPU. */
  readonly threads: number;
  readonly data: TrainingData;
  /** Of the samples, where they are the user's own. */
  readonly dataDigest: string | undefined;
  /** The model, where a program gave it. */
  readonly traced: TracedModel | undefined;
  /** As what samples are shown; none where ranks share the model out. */
  readonly sampleKind: SampleKind | undefined;
  /** Hash of the paths, dtypes and shapes of the trained parameters. */
  readonly trainedHash: string;
  /** Parts of a plan that state of single ranks is laid out by. */
  readonly boundPlans: readonly PlanName[];
  /** What was recorded of other parts that a program gave. */
  readonly recordings: PartRecordings | undefined;
  /** Words of `StopSignal`. */
  readonly stop: SharedArrayBuffer;
}

/** What a rank tells whoever keeps the record. */
export type RankMessage =
  /** Rank 0 only: the loss is the mean of all ranks. */
  | {
      readonly type: "step";
      readonly step: number;
      /** Counted from 1. */
      readonly epoch: number;
      readonly loss: number;
      readonly seconds: number;
      /** Of those, what was spent waiting for collectives. */
      readonly exposedSeconds: number;
      /** Of those, for all-to-alls; where steps have them. */
      readonly exposedAllToAllSeconds?: number;
      /** Of `seconds`, what was spent waiting for a batch. */
      readonly dataSeconds: number;
      /** Of the images of rank 0's part of the batch, which part came from the cache; where there is one. */
      readonly cacheHitRate?: number;
      /** Payload that rank 0 has sent during the step. */
      readonly bytesSent: number;
      /** Resident memory of rank 0's process after it. */
      readonly residentBytes: number | undefined;
      /** Of the update that the step has made; with `overlap: dear` it comes by itself, a step later. */
      readonly update?: UpdateFigures | undefined;
      /** The update was left out because f16 gradients overflowed. */
      readonly skipped: boolean;
      /** What the model tells of the step, by name. */
      readonly model?: Readonly<Record<string, number>> | undefined;
    }
  /** Of each rank of several, now and then: what its last steps took it. */
  | { readonly type: "paced"; readonly step: number; readonly seconds: number; readonly ownSeconds: number }
  | ({ readonly type: "updated"; readonly step: number } & UpdateFigures)
  | {
      readonly type: "evaluated";
      readonly step: number;
      readonly sums: EvaluationSums;
      readonly seconds: number;
      /** Of rank 0: how it compares to those before, where something follows from that. */
      readonly best?: BestSoFar | undefined;
    }
  /** What the model makes of this rank's share of some held-out samples, before the figures of that evaluation. */
  | { readonly type: "sampled"; readonly step: number; readonly samples: readonly SampleOutput[] }
  /** From rank 0: the plan that all ranks train by, and a line for people if any of it was decided in this run. */
  | { readonly type: "planned"; readonly plan: ExchangePlan; readonly remark: string }
  /** Of rank 0: experts that were moved after a step, and what it took. */
  | {
      readonly type: "moved";
      readonly step: number;
      readonly layers: readonly MovedLayer[];
      readonly seconds: number;
    }
  /** Of rank 0: which experts the tokens of all ranks chose in a step, for each layer by its name. */
  | { readonly type: "routed"; readonly step: number; readonly layers: Readonly<Record<string, RoutingJson>> }
  /** Of rank 0: some of the parameters of all ranks after a step; whether they are the last ones. */
  | {
      readonly type: "histograms";
      readonly step: number;
      readonly parameters: readonly ParameterHistograms[];
      readonly isLast: boolean;
    }
  /** Of rank 0: something worth telling people. */
  | { readonly type: "remark"; readonly text: string }
  /** An image that cannot be decoded, and that another takes the place of. */
  | { readonly type: "damaged"; readonly image: DamagedImage }
  /** A rank cannot have what it needs to go on; it waits for word which step is the last that all do, and save. */
  | { readonly type: "cut-short"; readonly error: ErrorReport }
  | {
      readonly type: "saved";
      readonly step: number;
      readonly files: readonly SavedFile[];
      /** Of a stream: where the lanes stand that this rank reads. */
      readonly lanes?: readonly PlacedLane[] | undefined;
    }
  /** Of rank 0, which has measured the links of all pairs. */
  | { readonly type: "links"; readonly measured: MeasuredLinks }
  | { readonly type: "spans"; readonly spans: readonly Span[] }
  | {
      readonly type: "done";
      readonly step: number;
      readonly bytesSent: number;
      /** Name of the process that the rank ran in, and the most memory that it has held. */
      readonly process: string;
      readonly peakMemoryBytes: number;
    }
  | { readonly type: "failed"; readonly error: ErrorReport };
