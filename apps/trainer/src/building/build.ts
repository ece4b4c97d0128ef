import { dirname, join } from "node:path";
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
  type Mesh,
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
import { dataAxis, replicasAxisOf, tensorAxis } from "../step/mesh.ts";
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

// This file and build-exchange.ts turn names of a job into things; all others take the things.

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

/** Images, decoded before training, while it goes on, or as they come by. */
const loadImages = async (job: DecodedJob): Promise<Omit<TrainingData, "predicts">> => {
  const { fit: _, resize: __, resample: ___, ...others } = job;
  const options: ImageOptions = { ...others, ...decodingOf(job), size: sidesOf(job.size), from: import.meta.url };
  const { cacheMegabytes, decodesAtOnce } = job;
  const decodeSize = job.decodeSize === undefined ? undefined : sidesOf(job.decodeSize);
  const kept = cacheFolder();
  const digestFolder = kept && join(kept, "digests");
  const lazy = cacheMegabytes === undefined ? undefined : { cacheMegabytes, decodesAtOnce, decodeSize, digestFolder };
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
 * The samples that a job asks for. With a validation fraction, samples held back from training replace the test
 * samples; with `judgeBy: training`, the training samples do. The limits `trainSamples` and `testSamples` apply last.
 */
export const limited = <Of extends Samples>(data: DataSet<Of>, job: DataJob): DataSet<Of> => {
  const { trainSamples, testSamples, judgeBy } = job;
  const { train, test } = job.validationFraction === undefined ? data : validationSplit(data, job);
  const learnt = limitSamples(train, trainSamples, data);
  const judged = judgeBy === "training" ? learnt : test;
  return { ...data, train: learnt, test: limitSamples(judged, testSamples, data) };
};

/** The same of what a job names, whose training samples may come by: those cannot be cut. */
const cut = (data: TrainingData, job: DataJob): TrainingData => {
  const { train, test } = data;
  return isStreamed(train)
    ? { ...data, test: limitSamples(test, job.testSamples, data) }
    : limited<Samples>({ ...data, train }, job);
};

/**
 * Load the samples into shared memory, or open the files that they are in.
 *
 * @throws DataError, ModuleError when they are missing, truncated or altered.
 */
export const buildData = async (job: DataJob): Promise<TrainingData> => {
  const data = cut(await loadData(job), job);
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

/** What samples a model of ours takes, and what it learns from them. */
const requireTask = ({ kind }: OwnModelJob, task: Task): number => {
  const { predicts, classes } = task;
  const images = kind === "cnn" || kind === "resnet18";
  const fault = (rule: string): never => {
    throw new ConfigError([
      `model.kind: a ${kind} ${rule}; use another model, such as {kind: module} for one of yours`,
    ]);
  };
  if (!isLabelled(task))
    fault(`takes samples of inputs and labels, a tensor each, but these are ${layoutOf({ fields: task.leaves })}`);
  const { dtype, shape } = task.inputs;
  if (predicts === "values" || predicts === "own")
    fault(
      `gives a score to each of some classes, but the ${predicts === "own" ? "data says predicts: own" : "labels of this data are values"}`,
    );
  if (kind === "gpt" && (predicts === "classes" || shape.length !== 1))
    fault(
      `predicts the next token at each position of a text, but the inputs are ${dtype}[${shape.join(", ")}] with ${predicts}`,
    );
  if (kind !== "gpt" && predicts !== "classes")
    fault(`predicts one class per sample, but the labels of this data are ${predicts}`);
  if (images && shape.length !== 3)
    fault(`looks at images [height, width, channels], but the inputs are ${dtype}[${shape.join(", ")}]`);
  if (kind === "cnn" && (shape[0]! < 4 || shape[1]! < 4))
    fault(`halves images twice, so they need 4 rows and columns at least, but have ${shape[0]}×${shape[1]}`);
  return classes!;
};

/** Models of ours, by name. */
export type OwnModelJob = Exclude<ModelJob, { readonly kind: "module" | "program" | "pretrained" }>;

type ModelInput = Pick<Job, "memory" | "mesh">;

/**
 * @param task whose samples fix the first layer, and whose classes the last.
 * @param experts how tokens travel, where that was planned.
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
 * The model, of inputs as the job's data want them seen.
 *
 * @throws ConfigError where these have other channels.
 */
export const seenBy = <Own extends AnyModel>(model: Own, data: DataJob, task: Pick<Task, "inputs">): Own => {
  if (!("normalise" in data) || data.normalise === undefined) return model;
  const { shape } = task.inputs;
  const channels = shape.at(-1);
  for (const name of ["mean", "std"] as const) {
    const { length } = data.normalise[name];
    if (length !== 1 && length !== channels)
      throw new ConfigError([
        `data.normalise.${name}: ${length} numbers do not fit inputs [${shape.join(", ")}], which have ${channels ?? "no"} channels; give one for each, or one for all`,
      ]);
  }
  return normalised(model as Model, data.normalise) as AnyModel as Own; // the data is ours: images with labels
};

/** What a model is made of beside the job and its data. */
interface GivenToModel {
  /** By a program; it was traced with inputs as the data want them seen, and with the job's metrics. */
  readonly given?: AnyModel | undefined;
  readonly experts?: ExpertsPlan | undefined;
  /** Of a program, for a model that has another origin. */
  readonly program?: ProgramParts | undefined;
}

/** @throws ConfigError, ModuleError. */
export const buildModel = async (
  job: ModelInput & Pick<Job, "model" | "data" | "metrics">,
  task: Task,
  { given, experts, program }: GivenToModel = {},
): Promise<AnyModel> =>
  // what a program gave was traced with the job's metrics
  job.model.kind === "program"
    ? (given ?? ofAProgram("model"))
    : withOwnMetrics(seenBy(await bareModel(job, task, experts), job.data, task), job, task, program);

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

/** What a part of a job says beside its kind. */
const settingsOf = <Part extends { readonly kind: string }>({ kind: _, ...settings }: Part): Omit<Part, "kind"> =>
  settings;

/** What an optimizer is made of beside the job. */
interface RuleInput {
  /** What the job says of single parameters. */
  readonly groups: ParameterGroups;
  /** Which parameters are stacks of matrices. */
  readonly stackDims: StackDims;
  /** Of the job, where its optimizer looks at it. */
  readonly curvature: Curvature | undefined;
  /** What a module makes, where the job names one. */
  readonly own: GradientTransformation<unknown> | undefined;
}

const buildRule = (
  job: OptimizerJob,
  learningRate: Schedule,
  { groups, curvature, own, stackDims }: RuleInput,
): GradientTransformation<unknown> => {
  const mask = decayMaskOf(groups, () => true);
  const matrices = decayMaskOf(groups, decayMatrices);
  switch (job.kind) {
    case "module":
    case "program":
      if (own === undefined) throw new InvariantError("an optimizer was built without what its module makes");
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
        axis: dataAxis,
      }) as GradientTransformation<unknown>;
    case "lamb":
      return lamb({
        ...settingsOf(job),
        learningRate,
        decayMask: matrices,
        stackDims,
        axis: dataAxis,
      }) as GradientTransformation<unknown>;
    default:
      if (curvature === undefined) throw new InvariantError("an optimizer was built without what it looks at");
      return curvature.rule;
  }
};

export const buildOptimizer = (
  { optimizer, clipNorm, zero }: Job,
  rate: Schedule,
  { sharding, mesh }: { readonly sharding: Sharding; readonly mesh: Mesh },
  input: RuleInput,
): GradientTransformation<unknown> => {
  const onEachRank = atOwnRates(buildRule(optimizer, rate, input), input.groups);
  const rule = zero === 1 ? shardedOptimizer(onEachRank, replicasAxisOf({ sharding, mesh })) : onEachRank;
  return clipNorm === undefined
    ? rule
    : (chain(clipByGlobalNorm(clipNorm, sharding), rule) as GradientTransformation<unknown>);
};

/** The last part of every optimizer counts its updates; where there are several, their states are in a tree. */
const updatesIn = (state: unknown): Tensor => {
  const { step } = state as Partial<ScheduleState>;
  return step ?? updatesIn(Object.values(state as object).at(-1));
};

/** The learning rate of the next update, f32 scalar, by the state of the job's optimizer. Traced. */
export const buildLearningRateOf =
  (rate: Schedule): ((optimizerState: unknown) => Tensor) =>
  (state) =>
    resolveSchedule(rate, updatesIn(state));

/** The scale of the loss; none where gradients have the range of f32. */
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
