import { dirname } from "node:path";
import { type Augmentation, isStreamed, mnistClasses, type Samples } from "@skein/data";
import {
  findImages,
  findInParquet,
  findInShards,
  type FoundImages,
  type ImageOptions,
  loadFashionMnist,
  loadFoundImages,
  loadIdx,
  loadMnist,
  loadNumpy,
  openFoundImages,
  openImageStream,
  readManifest,
} from "@skein/data/node";
import { lamb, lars, type StackDims } from "@skein/second-order";
import { cnn, gpt, mlp, type Model, normalised, resnet18 } from "@skein/models";
import {
  adam,
  adamw,
  chain,
  clipByGlobalNorm,
  decayMatrices,
  dynamicLossScale,
  elementCount,
  type GradientTransformation,
  InvariantError,
  type LossScale,
  momentum,
  nesterov,
  resolveSchedule,
  type Schedule,
  type Sharding,
  type ScheduleState,
  sgd,
  type Tensor,
} from "@skein/tensor-core";
import type { Curvature } from "../step/curvature.ts";
import { ConfigError } from "../errors.ts";
import { buildExperts } from "./build-experts.ts";
import { tensorAxis } from "../step/mesh.ts";
import { atOwnRates, decayMaskOf, type ParameterGroups } from "../step/parameter-groups.ts";
import { shardedOptimizer } from "../step/sharded-optimizer.ts";
import { augmentationFault } from "../modules/checked-augmentation.ts";
import { checkedData } from "../modules/checked-data.ts";
import { checkedModel } from "../modules/checked-model.ts";
import { ofAProgram } from "../modules/given-thing.ts";
import { makeOwn, moduleName } from "../modules/load-module.ts";
import type { ProgramParts } from "../modules/program-parts.ts";
import { withOwnMetrics } from "../modules/own-metrics.ts";
import { type AnyModel, type DataSet, type TrainingData, isLabelled, layoutOf, type Task } from "../modules/task.ts";
import { cacheFolder } from "../run/cache-folder.ts";
import { decodingOf } from "../job/image-decoding.ts";
import { sidesOf } from "../job/image-sides.ts";
import type { DataJob, DecodedJob, Job, ModelJob, OptimizerJob, PrecisionJob } from "../job/job.ts";
import { type ExpertsPlan, settledExperts } from "../planning/experts-plan.ts";
import { limitSamples } from "./limit-samples.ts";
import { mobyDickData, textData, tokenData } from "./text-data.ts";
import { validationSplit } from "./validation-split.ts";
import { pretrainedModel } from "../pretrained/pretrained-model.ts";

// This file and build-exchange.ts convert names in a job to objects; all other files use the objects.

const findImagesOf = async (job: DecodedJob): Promise<FoundImages> => {
  switch (job.kind) {
    case "image-folder":
      return findImages(job.folder, job.testFraction);
    case "image-manifest":
      return readManifest(job.file, job.testFraction);
    case "image-parquet":
      return findInParquet(job, job);
    case "webdataset":
      return findInShards(job, job);
  }
};

/** Loads images that are decoded before training, during training, or streamed. */
const loadImages = async (job: DecodedJob): Promise<Omit<TrainingData, "predicts">> => {
  const { fit: _, resize: __, resample: ___, ...others } = job;
  const options: ImageOptions = { ...others, ...decodingOf(job), size: sidesOf(job.size), from: import.meta.url };
  const { cacheMegabytes, decodesAtOnce } = job;
  const decodeSize = job.decodeSize === undefined ? undefined : sidesOf(job.decodeSize);
  const lazy =
    cacheMegabytes === undefined
      ? undefined
      : { cacheMegabytes, decodesAtOnce, decodeSize, digestFolder: cacheFolder("digests") };
  if ("stream" in job && job.stream !== undefined) {
    const { kind, stream, file, testFile, image, label } = job;
    const field = kind === "webdataset" ? job.field : undefined;
    return openImageStream({
      ...options,
      ...stream,
      shards: { of: kind, file, testFile, image, label, field },
      lazy,
      decodesAtOnce,
    });
  }
  const found = await findImagesOf(job);
  return lazy === undefined ? loadFoundImages(found, options) : openFoundImages(found, { ...options, ...lazy });
};

const loadData = async (job: DataJob): Promise<TrainingData> => {
  switch (job.kind) {
    case "mnist":
      return {
        ...loadMnist({ folder: job.folder, from: import.meta.url }),
        predicts: "classes",
        classes: mnistClasses,
      };
    case "fashion-mnist":
      return { ...loadFashionMnist({ folder: job.folder }), predicts: "classes", classes: mnistClasses };
    case "idx":
      return { ...loadIdx(job), predicts: "classes" };
    case "image-folder":
    case "image-manifest":
    case "image-parquet":
    case "webdataset":
      return { ...(await loadImages(job)), predicts: "classes" };
    case "numpy":
      return loadNumpy(job);
    case "moby-dick":
      return mobyDickData(job);
    case "text":
      return textData(job);
    case "tokens":
      return tokenData(job);
    case "module":
      return checkedData(await makeOwn("data", job), moduleName("data", job));
    case "program":
      return ofAProgram("data");
  }
};

/**
 * Applies the limits of a job to its samples. With a validation fraction, samples held out from training replace the
 * test samples; with `judgeBy: training`, the training samples do. The limits `trainSamples` and `testSamples` apply
 * last.
 */
export const limitData = <Of extends Samples>(data: DataSet<Of>, job: DataJob): DataSet<Of> => {
  const { trainSamples, testSamples, judgeBy } = job;
  const { train, test } = job.validationFraction === undefined ? data : validationSplit(data, job);
  const trainPart = limitSamples(train, trainSamples, data);
  const evaluated = judgeBy === "training" ? trainPart : test;
  return { ...data, train: trainPart, test: limitSamples(evaluated, testSamples, data) };
};

/** Applies the limits of a job to samples that may be streamed; streamed training samples are not limited. */
const limitAny = (data: TrainingData, job: DataJob): TrainingData => {
  const { train, test } = data;
  return isStreamed(train)
    ? { ...data, test: limitSamples(test, job.testSamples, data) }
    : limitData<Samples>({ ...data, train }, job);
};

/**
 * Loads the samples into shared memory, or opens their files.
 *
 * @throws DataError, ModuleError if they are missing, truncated or altered.
 */
export const buildData = async (job: DataJob): Promise<TrainingData> => {
  const data = limitAny(await loadData(job), job);
  if (!("augment" in job) || job.augment === undefined) return data;
  const { crop, flip, resizedCrop, jitter } = job.augment;
  const augmentation: Augmentation = { cropPadding: crop, flip, resizedCrop, jitter };
  const fault = augmentationFault(augmentation, data.train.fields["inputs"]);
  if (fault !== undefined)
    throw new ConfigError([
      `data.augment${{ "": "", cropPadding: ".crop", jitter: ".jitter" }[fault.part]}: ${fault.rule}`,
    ]);
  return { ...data, augmentation };
};

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

/** Built-in models. */
export type OwnModelJob = Exclude<ModelJob, { readonly kind: "module" | "program" | "pretrained" }>;

type ModelInput = Pick<Job, "memory" | "mesh">;

/**
 * Builds a built-in model.
 *
 * @param task its samples determine the first layer, its classes the last.
 * @param experts how tokens are sent to experts, if that was planned.
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
 * Adds the normalization of the job's data to a model.
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
  return normalised(model as Model, data.normalise) as AnyModel as Own; // only data loaded by us has this option: images with labels
};

/** Inputs of a model in addition to the job and its data. */
interface ModelSources {
  /** Model of a program, traced with the normalization of the data and with the job's metrics. */
  readonly given?: AnyModel | undefined;
  readonly experts?: ExpertsPlan | undefined;
  /** Parts of a program, for a model from elsewhere. */
  readonly program?: ProgramParts | undefined;
}

/** Builds the model of a job. @throws ConfigError, ModuleError. */
export const buildModel = async (
  job: ModelInput & Pick<Job, "model" | "data" | "metrics">,
  task: Task,
  { given, experts, program }: ModelSources = {},
): Promise<AnyModel> =>
  // a program's model was traced with the job's metrics
  job.model.kind === "program"
    ? (given ?? ofAProgram("model"))
    : withOwnMetrics(withNormalisation(await bareModel(job, task, experts), job.data, task), job, task, program);

const bareModel = async (
  { model: job, ...others }: ModelInput & Pick<Job, "model">,
  task: Task,
  experts: ExpertsPlan | undefined,
): Promise<AnyModel> => {
  if (job.kind === "program") return ofAProgram("model");
  if (job.kind === "pretrained") return pretrainedModel(job, task, others.memory);
  if (job.kind === "module") {
    const made = await makeOwn("model", job, task);
    return checkedModel(made, task.predicts, moduleName("model", job), dirname(job.file));
  }
  return buildOwnModel({ ...others, model: job }, task, experts);
};

/** Returns the settings of a part of a job without its kind. */
const settingsOf = <Part extends { readonly kind: string }>({ kind: _, ...settings }: Part): Omit<Part, "kind"> =>
  settings;

/** Inputs of an optimizer in addition to the job. */
interface RuleInput {
  /** Options of single parameters in the job. */
  readonly groups: ParameterGroups;
  /** Which parameters are stacks of matrices. */
  readonly stackDims: StackDims;
  /** Mesh axis along which ranks have the same values of the parameter at a path. */
  readonly replicaAxis: (path: string) => string;
  /** Curvature of the job, if its optimizer needs it. */
  readonly curvature: Curvature | undefined;
  /** User optimizer, if the job names one. */
  readonly own: GradientTransformation<unknown> | undefined;
}

const buildRule = (
  job: OptimizerJob,
  learningRate: Schedule,
  { groups, curvature, own, stackDims, replicaAxis }: RuleInput,
): GradientTransformation<unknown> => {
  const mask = decayMaskOf(groups, () => true);
  const matrices = decayMaskOf(groups, decayMatrices);
  switch (job.kind) {
    case "module":
    case "program":
      if (own === undefined) throw new InvariantError("an optimizer was built without its user optimizer");
      return own;
    case "sgd":
      return sgd({ ...settingsOf(job), learningRate, mask });
    case "momentum":
      return momentum({ ...settingsOf(job), learningRate, mask });
    case "nesterov":
      return nesterov({ ...settingsOf(job), learningRate, mask });
    case "adam":
      return adam({ ...settingsOf(job), learningRate });
    case "adamw":
      return adamw({ ...settingsOf(job), learningRate, mask: matrices });
    case "lars":
      return lars({
        ...settingsOf(job),
        learningRate,
        decayMask: matrices,
        stackDims,
        axis: replicaAxis,
      }) as GradientTransformation<unknown>;
    case "lamb":
      return lamb({
        ...settingsOf(job),
        learningRate,
        decayMask: matrices,
        stackDims,
        axis: replicaAxis,
      }) as GradientTransformation<unknown>;
    default:
      if (curvature === undefined) throw new InvariantError("an optimizer was built without its curvature");
      return curvature.rule;
  }
};

export const buildOptimizer = (
  { optimizer, clipNorm, zero }: Job,
  rate: Schedule,
  sharding: Sharding,
  input: RuleInput,
): GradientTransformation<unknown> => {
  const onEachRank = atOwnRates(buildRule(optimizer, rate, input), input.groups);
  const rule = zero === 1 ? shardedOptimizer(onEachRank, input.replicaAxis) : onEachRank;
  return clipNorm === undefined
    ? rule
    : (chain(clipByGlobalNorm(clipNorm, sharding), rule) as GradientTransformation<unknown>);
};

/**
 * Returns the update counter: the last part of every optimizer counts its updates; states of several parts form a tree.
 */
const updatesIn = (state: unknown): Tensor => {
  const { step } = state as Partial<ScheduleState>;
  return step ?? updatesIn(Object.values(state as object).at(-1));
};

/**
 * Returns a function that computes the learning rate of the next update, f32 scalar, from the state of the job's
 * optimizer. Traced.
 */
export const buildLearningRateOf =
  (rate: Schedule): ((optimizerState: unknown) => Tensor) =>
  (state) =>
    resolveSchedule(rate, updatesIn(state));

/** Builds the loss scale; undefined if gradients have the range of f32. */
export const buildLossScale = (job: PrecisionJob): LossScale | undefined => {
  switch (job.kind) {
    case "f32":
    case "mixed-bf16":
      return undefined;
    case "mixed-f16":
      return dynamicLossScale({
        initial: job.initialScale,
        growthInterval: job.growthInterval,
        minimum: Math.min(1, job.initialScale),
      });
  }
};
