import type { Job } from "@skein/job/node";
import {
  type AnyModel,
  type ExchangePlan,
  isExpertsPlanned,
  type OwnParts,
  type PartsInput,
  type SampleKind,
  scheduleOffsetOf,
  taskOf,
  type TrainingData,
} from "@skein/step/node";
import type { Sharding, TensorSpec } from "@skein/tensor-core";
import { buildOwnModel } from "./build-model.ts";
import type { GivenParts } from "../modules/program-parts.ts";
import type { TracedModel } from "../modules/traced-model.ts";

/** A job whose data is loaded and which satisfies all rules that depend on the data. No file has been written yet. */
export interface Prepared {
  readonly job: Job;
  readonly data: TrainingData;
  readonly model: AnyModel;
  /** Model graph given by a program, sent to the threads of ranks. Undefined: the model did not come from a program. */
  readonly traced: TracedModel | undefined;
  /** Objects given by a program. Undefined: none. */
  readonly given: GivenParts | undefined;
  readonly stepsPerEpoch: number;
  /** Number of steps done at the end of the run. */
  readonly totalSteps: number;
  /**
   * Position in the training samples, in steps, minus the number of completed steps; see `stepOffsetAfter`. 0 for a new
   * run.
   */
  readonly stepOffset: number;
  /** User-defined schedule, optimizer and gradient exchange of the training step, from modules or a program. */
  readonly own: OwnParts;
  /** Specs of the complete tensors in a checkpoint, by name. Shards of a tensor are merged. */
  readonly whole: ReadonlyMap<string, TensorSpec>;
  /** Specs of the tensors of which each rank has its own version, such as compressor residuals, by name. */
  readonly ownLeaves: ReadonlyMap<string, TensorSpec>;
  /** Size of the state on one rank in bytes. */
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
  /** Digest of the samples. Undefined: the samples do not come from user files. */
  readonly dataDigest: string | undefined;
  /**
   * Format in which samples are displayed. Undefined: the job displays no samples, or the model is sharded over ranks.
   */
  readonly sampleKind: SampleKind | undefined;
  /** Remarks for the user, such as settings without effect. */
  readonly remarks: readonly string[];
}

/** Objects given by a program, instead of names in a job file. */
export interface Given {
  readonly data?: TrainingData | undefined;
  readonly model?: TracedModel | undefined;
  readonly parts?: GivenParts | undefined;
  readonly callbacks?: unknown;
}

/**
 * Returns the input for `buildParts`, which builds the components of a training step.
 *
 * @param plan Plan of the run. Needed if the dispatch of tokens to experts is planned.
 */
export const partsInputOf = (
  { job, model, totalSteps, stepOffset, data, own }: Prepared,
  plan?: ExchangePlan,
): PartsInput => ({
  job,
  scheduleOffset: scheduleOffsetOf(job, stepOffset),
  own,
  // The prepared model was built without a plan for token dispatch, so it is built again.
  model:
    plan?.experts !== undefined && job.model.kind === "gpt" && isExpertsPlanned(job)
      ? buildOwnModel({ ...job, model: job.model }, taskOf(data), plan.experts)
      : model,
  totalSteps,
  train: data.train,
});
