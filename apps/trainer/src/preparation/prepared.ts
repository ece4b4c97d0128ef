import type { Sharding, TensorSpec } from "@skein/tensor-core";
import { buildOwnModel } from "./build-model.ts";
import type { ExchangePlan } from "../plans/exchange-plan.ts";
import { isExpertsPlanned } from "../plans/experts-plan.ts";
import type { Job } from "../job/job.ts";
import type { OwnParts } from "../modules/own-parts.ts";
import type { GivenParts } from "../modules/program-parts.ts";
import type { SampleKind } from "../task/sample-pass.ts";
import { type AnyModel, taskOf, type TrainingData } from "../task/task.ts";
import type { TracedModel } from "../modules/traced-model.ts";
import { type PartsInput, scheduleOffsetOf } from "../step/train-state.ts";

/** A job with its data loaded, and all rules checked that need the data. Nothing is written yet. */
export interface Prepared {
  readonly job: Job;
  readonly data: TrainingData;
  readonly model: AnyModel;
  /** The model, if a program gave it; threads of ranks receive this graph. */
  readonly traced: TracedModel | undefined;
  /** Parts given by a program. */
  readonly given: GivenParts | undefined;
  readonly stepsPerEpoch: number;
  /** Number of steps at the end of the run. */
  readonly totalSteps: number;
  /** Offset of a resumed run, see `stepOffsetAfter`; otherwise 0. */
  readonly stepOffset: number;
  /** User parts of the training step, from modules or a program. */
  readonly own: OwnParts;
  /** Specs of the tensors of all ranks in a checkpoint, by name; sharded tensors are merged. */
  readonly whole: ReadonlyMap<string, TensorSpec>;
  /** Specs of the tensors that each rank has by itself. */
  readonly ownLeaves: ReadonlyMap<string, TensorSpec>;
  /** Bytes of state on one rank. */
  readonly stateBytes: number;
  readonly sharding: Sharding;
  /** Specs of the parameters. */
  readonly params: unknown;
  /** Specs of the trained parameters. */
  readonly trained: unknown;
  /** Hash of the paths, dtypes and shapes of the trained parameters, 16 hexadecimal digits. */
  readonly trainedHash: string;
  /** Specs of the model state. */
  readonly modelState: unknown;
  readonly modelHash: string;
  readonly jobHash: string;
  /** The settings that `jobHash` covers, by dotted key, see `flatSettings`. */
  readonly jobSettings: Readonly<Record<string, string>>;
  /** Digest of the samples if they come from user files. */
  readonly dataDigest: string | undefined;
  /** How samples are shown. Undefined: the job does not ask for samples, or ranks shard the model. */
  readonly sampleKind: SampleKind | undefined;
  /** Remarks for people, such as settings without effect. */
  readonly remarks: readonly string[];
}

/** Objects that a program gave instead of names. */
export interface Given {
  readonly data?: TrainingData | undefined;
  readonly model?: TracedModel | undefined;
  readonly parts?: GivenParts | undefined;
  readonly callbacks?: unknown;
}

/** Returns the inputs of a run's parts. @param plan of a run, if the dispatch of tokens to experts is planned. */
export const partsInputOf = (
  { job, model, totalSteps, stepOffset, data, own }: Prepared,
  plan?: ExchangePlan,
): PartsInput => ({
  job,
  scheduleOffset: scheduleOffsetOf(job, stepOffset),
  own,
  model:
    job.model.kind === "gpt" && isExpertsPlanned(job)
      ? buildOwnModel({ ...job, model: job.model }, taskOf(data), plan?.experts)
      : model,
  totalSteps,
  train: data.train,
});
