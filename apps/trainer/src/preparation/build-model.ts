import { dirname } from "node:path";
import { ConfigError } from "@skein/cli/node";
import { type DataJob, type Job, type ModelJob, tensorAxis } from "@skein/job/node";
import { cnn, gpt, mlp, type Model, normalised, resnet18 } from "@skein/models";
import {
  type AnyModel,
  buildExperts,
  type ExpertsPlan,
  isLabelled,
  layoutOf,
  settledExperts,
  type Task,
} from "@skein/step/node";
import { elementCount } from "@skein/tensor-core";
import { checkedModel } from "../modules/checked-model.ts";
import { failWithoutProgram } from "../modules/program-objects.ts";
import { makeOwn, moduleName } from "../modules/load-module.ts";
import type { ProgramParts } from "../modules/program-parts.ts";
import { withOwnMetrics } from "../modules/own-metrics.ts";
import { pretrainedModel } from "../pretrained/pretrained-model.ts";

/** Checks that a built-in model fits the samples. @returns the number of classes. */
const requireTask = ({ kind }: OwnModelJob, task: Task): number => {
  const { predicts, classes } = task;
  const images = kind === "cnn" || kind === "resnet18";
  const fault = (rule: string): never => {
    throw new ConfigError([
      `model.kind: a ${kind} ${rule}; use another model, such as {kind: module} for a user model`,
    ]);
  };
  if (!isLabelled(task))
    fault(
      `needs samples with inputs and labels, one tensor each, but these samples are ${layoutOf({ fields: task.leaves })}`,
    );
  const { dtype, shape } = task.inputs;
  if (predicts === "values" || predicts === "own")
    fault(
      `predicts class scores, but the ${predicts === "own" ? "data has predicts: own" : "labels of this data are values"}`,
    );
  if (kind === "gpt" && (predicts === "classes" || shape.length !== 1))
    fault(
      `predicts the next token at each position of a text, but the inputs are ${dtype}[${shape.join(", ")}] with ${predicts}`,
    );
  if (kind !== "gpt" && predicts !== "classes")
    fault(`predicts one class per sample, but the labels of this data are ${predicts}`);
  if (images && shape.length !== 3)
    fault(`needs images [height, width, channels], but the inputs are ${dtype}[${shape.join(", ")}]`);
  if (kind === "cnn" && (shape[0]! < 4 || shape[1]! < 4))
    fault(`halves images twice, so images need at least 4 rows and columns, but have ${shape[0]}×${shape[1]}`);
  return classes!;
};

/** Field `model` of a job with a built-in model. */
export type OwnModelJob = Exclude<ModelJob, { readonly kind: "module" | "program" | "pretrained" }>;

type ModelInput = Pick<Job, "memory" | "mesh">;

/**
 * Builds a built-in model.
 *
 * @param task Task whose samples determine the first layer, and whose classes determine the last layer.
 * @param experts Plan for the dispatch of tokens to experts. Absent: no plan was made.
 * @throws ConfigError.
 */
export const buildOwnModel = (
  { model: job, memory, mesh }: ModelInput & { readonly model: OwnModelJob },
  task: Task,
  experts?: ExpertsPlan,
): Model => {
  const classes = requireTask(job, task);
  const { shape } = task.inputs;
  const recompute = memory.recompute === "blocks" ? "blocks" : "none";
  switch (job.kind) {
    case "mlp":
      return mlp({ sizes: [elementCount(shape), ...job.hidden, classes] }) as Model;
    case "cnn":
      return cnn({
        imageSize: [shape[0]!, shape[1]!],
        inputChannels: shape[2]!,
        channels: job.channels,
        hidden: job.hidden,
        dropoutRate: job.dropout,
        numClasses: classes,
      }) as Model;
    case "resnet18":
      return resnet18({ inputChannels: shape[2]!, channels: job.channels, numClasses: classes, recompute }) as Model;
    case "gpt":
      return gpt({
        vocabulary: classes,
        contextLength: shape[0]!,
        width: job.width,
        numLayers: job.layers,
        numHeads: job.heads,
        dropoutRate: job.dropout,
        recompute,
        ...(job.experts && { experts: buildExperts(settledExperts(job.experts, mesh, experts), job.width, mesh) }),
        ...(mesh.tensor > 1 && { tensor: { axis: tensorAxis } }),
      }) as Model;
  }
};

/**
 * Adds the image normalization of the job's data to a model.
 *
 * @throws ConfigError if the number of channels differs.
 */
export const withNormalisation = <Own extends AnyModel>(model: Own, data: DataJob, task: Pick<Task, "inputs">): Own => {
  if (!("normalise" in data) || data.normalise === undefined) return model;
  const { shape } = task.inputs;
  const channels = shape.at(-1);
  for (const name of ["mean", "std"] as const) {
    const { length } = data.normalise[name];
    if (length !== 1 && length !== channels)
      throw new ConfigError([
        `data.normalise.${name}: ${length} numbers do not fit inputs [${shape.join(", ")}], which have ${channels ?? "no"} channels; give one number per channel, or one for all`,
      ]);
  }
  return normalised(model as Model, data.normalise) as AnyModel as Own; // only built-in loaders have this option
};

/** Optional inputs for building a model, in addition to the job and the task of its data. */
interface ModelSources {
  /** Model given by a program, traced with the normalization of the data and with the job's metrics. */
  readonly given?: AnyModel | undefined;
  readonly experts?: ExpertsPlan | undefined;
  /** Objects given by a program. Needed if the model comes from a program. */
  readonly program?: ProgramParts | undefined;
}

/** Builds the model of a job. @throws ConfigError, ModuleError. */
export const buildModel = async (
  job: ModelInput & Pick<Job, "model" | "data" | "metrics">,
  task: Task,
  { given, experts, program }: ModelSources = {},
): Promise<AnyModel> =>
  // a model from a program was traced with the job's metrics
  job.model.kind === "program"
    ? (given ?? failWithoutProgram("model"))
    : withOwnMetrics(withNormalisation(await bareModel(job, task, experts), job.data, task), job, task, program);

const bareModel = async (
  { model: job, ...others }: ModelInput & Pick<Job, "model">,
  task: Task,
  experts: ExpertsPlan | undefined,
): Promise<AnyModel> => {
  if (job.kind === "program") return failWithoutProgram("model");
  if (job.kind === "pretrained") return pretrainedModel(job, task, others.memory);
  if (job.kind === "module") {
    const made = await makeOwn("model", job, task);
    return checkedModel(made, task.predicts, moduleName("model", job), dirname(job.file));
  }
  return buildOwnModel({ ...others, model: job }, task, experts);
};
