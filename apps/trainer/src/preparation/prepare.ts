import { exchange } from "@skein/compressors";
import { decoderOf, type SampleSpecs, stepsPerEpoch } from "@skein/data";
import {
  byteLength,
  flattenTree,
  type Mesh,
  type Sharding,
  type Tensor,
  type TensorSpec,
  trace,
} from "@skein/tensor-core";
import { excerpt, formatSpec, leavesByPath, sameSpec } from "@skein/tensor-core/backend";
import { buildData } from "./build-data.ts";
import { buildModel, buildOwnModel } from "./build-model.ts";
import { requireSameStream, stepOffsetAfter } from "../checkpoint/data-position.ts";
import type { Manifest } from "../checkpoint/checkpoint-manifest.ts";
import { differencesOf, flatSettings } from "../checkpoint/job-settings.ts";
import { type Checkpoint, rankFile, requireSameTensors, sharedFile, specsText } from "../checkpoint/checkpoint.ts";
import { sha256 } from "../files/sha256.ts";
import { cutsOf, shardFilesIn, wholeSpec } from "../checkpoint/checkpoint-shards.ts";
import { comparedFigures, evaluatedOn } from "../evaluation/evaluation-figures.ts";
import { exchangeOptions } from "../step/loss-and-gradients.ts";
import { withCheckpointClasses } from "../building/class-names.ts";
import { coverageRemarks } from "../evaluation/class-coverage.ts";
import { expertsOf } from "../job/experts-of.ts";
import { CheckpointError, ConfigError } from "../errors.ts";
import { type ExchangePlan, isExchangePlanned } from "../plans/exchange-plan.ts";
import { isExpertsPlanned } from "../plans/experts-plan.ts";
import { wantedPlan } from "../plans/kept-plan.ts";
import { trainedOf } from "../building/frozen.ts";
import { requireSmoothing } from "../building/label-smoothing.ts";
import { requireValues } from "./sample-values.ts";
import { placeOf, replicasAxisOf } from "../job/mesh.ts";
import { hashedData } from "../job/image-decoding.ts";
import type { DataJob, ExpertsJob, Job } from "../job/job.ts";
import { requireDeclared, requireElementwise, requireStateByParameter, sharesOut } from "../modules/elementwise.ts";
import { requireSharedState } from "../modules/model-state.ts";
import { givenName } from "../modules/given-thing.ts";
import { moduleName } from "../modules/load-module.ts";
import { withoutModulePlaces } from "../modules/module-keys.ts";
import { dataDigest } from "../modules/data-digest.ts";
import { loadOwnParts, type OwnParts } from "../modules/own-parts.ts";
import type { GivenParts } from "../modules/program-parts.ts";
import { preprocessorRemarks } from "../pretrained/preprocessor.ts";
import { withHeadFor } from "../pretrained/pretrained-model.ts";
import { sampleKindOf, type SampleKind, samplePassOf } from "../task/sample-pass.ts";
import { type AnyModel, taskOf, type TrainingData } from "../task/task.ts";
import { modelOf, type TracedModel, traceModel } from "../modules/traced-model.ts";
import {
  buildParts,
  type Parts,
  type PartsInput,
  type SavedLeaves,
  scheduleOffsetOf,
  splitLeaves,
  stateSharding,
  stateSpecs,
  totalStepsOf,
  type TrainState,
} from "../step/train-state.ts";

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

/** Settings that determine the results of training. */
const resultKeys = [
  "seed",
  "ranks",
  "backend",
  "blas",
  "precision",
  "batch",
  "epochs",
  "steps",
  "data",
  "model",
  "optimizer",
  "learningRate",
  "clipNorm",
  "compression",
  "buckets",
  "sumOrder",
] as const satisfies readonly (keyof Job)[];

/**
 * Settings that do not determine results: locations of files, whose contents count instead, and when and how fast
 * images are decoded.
 */
const ignoredKeys: readonly string[] = [
  "file",
  "testFile",
  "folder",
  "tokenizer",
  "cacheMegabytes",
  "decodesAtOnce",
  "preprocessor",
];

const withoutIgnored = (part: object): object =>
  Object.fromEntries(Object.entries(part).filter(([key]) => !ignoredKeys.includes(key)));

/**
 * Settings that determine the results of training: equal settings give the same bits at the same step.
 *
 * @param data digest of the samples, if the settings do not identify them.
 * @param decoder decoder of the samples, if the digest is of encoded samples.
 */
const resultSettings = (job: Job, data?: string, decoder?: string): Readonly<Record<string, unknown>> => {
  const values = {
    ...withoutModulePlaces(job),
    data: withoutIgnored(hashedData(job.data)),
    model: withoutIgnored(job.model),
  };
  const entries = resultKeys.map((name): [string, unknown] => [name, values[name]]);
  // With fused multiply-add, rounding depends on which operations are fused.
  if (job.memory.recompute !== "none") entries.push(["memory", job.memory]);
  // The mesh determines the order of additions.
  const { expert, tensor } = job.mesh;
  if (expert * tensor > 1) entries.push(["mesh", { expert, tensor }]);
  if (job.accumulate !== undefined && job.accumulate > 1) entries.push(["accumulate", job.accumulate]);
  if (job.average !== undefined) entries.push(["average", job.average]);
  for (const name of ["freeze", "rates", "weightDecays", "labelSmoothing"] as const)
    if (job[name] !== undefined) entries.push([name, job[name]]);
  if (job.zero === 1 && job.ranks > 1) entries.push(["zero", job.zero]);
  // Before version 2, validation samples were the last ones of all data.
  if (job.data.validationFraction !== undefined) entries.push(["validation", 2]);
  if (data !== undefined) entries.push(["samples", data]);
  if (decoder !== undefined) entries.push(["decoder", decoder]);
  return Object.fromEntries(entries);
};

type ResultSettingsInput = Parameters<typeof resultSettings>;

/** Hash of the settings that determine the results of training. */
export const jobHashOf = (...input: ResultSettingsInput): string => sha256(JSON.stringify(resultSettings(...input)));

/** The part of the settings that a manifest stores: the hash, and each setting by its dotted key, for messages. */
const settingsOf = (...input: ResultSettingsInput): Pick<Prepared, "jobHash" | "jobSettings"> => ({
  jobHash: jobHashOf(...input),
  jobSettings: flatSettings(resultSettings(...input)),
});

/** Whether the samples come from user files, which may change. Samples of a program have their digest in the job. */
const isUserData = (job: DataJob): boolean =>
  "file" in job || ("folder" in job && job.folder !== undefined) || ("tokenizer" in job && job.tokenizer !== undefined);

const requireFull = (train: SampleSpecs, batch: number): void => {
  if (batch > train.count)
    throw new ConfigError([
      `batch: ${batch} samples cannot be drawn from ${train.count} training samples; use a batch of at most ${train.count}`,
    ]);
};

/** Memory limit of a process: WebAssembly addresses have 32 bits, and the ranks of a process share one memory. */
const cpuMemoryBytes = 2 ** 32;

/** Maximum number of steps: steps are counted in a u32 of the state. */
const mostSteps = 2 ** 32 - 1;

/** Total bytes of tensors. */
const bytesOf = (specs: Iterable<TensorSpec>): number => [...specs].reduce((sum, spec) => sum + byteLength(spec), 0);

/**
 * Checks the memory of a rank before allocation: its state, and a gradient of each trained parameter. Activations come
 * in addition; the memory plan of the compiled step includes them.
 */
const requireRoom = ({ job, stateBytes, trained }: Pick<Prepared, "job" | "stateBytes" | "trained">): void => {
  if (job.backend !== "cpu") return; // a device reports itself when memory is missing
  const ranks = job.transport === "threads" ? job.ranks : job.network.ranksPerProcess;
  const needed = ranks * (stateBytes + bytesOf(flattenTree<TensorSpec>(trained).leaves));
  if (needed <= cpuMemoryBytes) return;
  const inGiB = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
  throw new ConfigError([
    `model: parameters, optimizer state and gradients of ${ranks} ${ranks === 1 ? "rank takes" : "ranks take"} ${inGiB(needed)}, but the CPU backend's memory of a process is ${inGiB(cpuMemoryBytes)}; use a smaller model, fewer ranks in a process, or backend: webgpu`,
  ]);
};

/**
 * Gates whose choice of experts for a token depends on all tokens of a batch, including later tokens of the same text.
 */
const gatesWithLookahead: readonly ExpertsJob["gate"][] = ["expert-choice", "soft"];

const remarksOn = (job: Job, totalSteps: number): string[] => {
  const { decay, warmupSteps } = job.learningRate;
  const gate = expertsOf(job)?.gate;
  return [
    ...preprocessorRemarks(job),
    ...(job.data.judgeBy === "training"
      ? [
          "data.judgeBy: training: the run is evaluated on its training samples; its metrics say nothing about other samples",
        ]
      : []),
    ...(gate !== undefined && gatesWithLookahead.includes(gate)
      ? [
          `model.experts.gate: with ${gate} later tokens influence the prediction of earlier ones, so losses are lower than for generated text; use another gate for a language model`,
        ]
      : []),
    ...(decay !== "constant" && warmupSteps >= totalSteps
      ? [
          `learningRate.decay: ${decay} has no effect: the warm-up of ${warmupSteps} steps covers all ${totalSteps} of the run`,
        ]
      : []),
    ...(job.overlap === "dear" && job.clipNorm !== undefined
      ? [
          "clipNorm: the norm of all gradients is needed before the first layer, so with overlap: dear nothing is hidden behind the forward pass",
        ]
      : []),
    ...(job.mesh.tensor === 1 && (expertsOf(job)?.shards ?? "none") !== "none"
      ? ["model.experts.shards has no effect: with mesh.tensor: 1 experts are not sharded"]
      : []),
    ...(job.zero === 1 && job.ranks === 1 ? ["zero has no effect: there is one rank"] : []),
    ...(isExpertsPlanned(job)
      ? [
          "the dispatch of tokens to experts is planned from measurements, so two runs may differ in the last bits; checkpoints keep the plan",
        ]
      : []),
    ...(isExchangePlanned(job) && job.compression.kind !== "identity"
      ? [
          `buckets are planned from measurements, so two runs of ${job.compression.kind} may differ; checkpoints keep the plan`,
        ]
      : []),
  ];
};

/** Specs of leaves merged over all ranks. */
const wholeSpecs = (
  { shared, parts, slices }: SavedLeaves<TensorSpec>,
  shardsOf: Sharding,
  mesh: Mesh,
): Map<string, TensorSpec> =>
  new Map([
    ...shared,
    ...parts.flatMap(({ leaves }) =>
      [...leaves].map(([path, spec]) => [path, wholeSpec(spec, cutsOf(shardsOf(path), mesh))] as const),
    ),
    ...[...slices].map(
      ([path, { leaf, shape }]) =>
        [path, wholeSpec({ dtype: leaf.dtype, shape }, cutsOf(shardsOf(path), mesh))] as const,
    ),
  ]);

/**
 * Specs of the tensors in a checkpoint's files, merged over all ranks.
 *
 * @throws CheckpointError if parts do not fit together.
 */
const savedSpecs = (
  { folder, tensors }: Checkpoint,
  shared: ReadonlyMap<string, TensorSpec>,
): Map<string, TensorSpec> =>
  new Map([
    ...shared,
    ...shardFilesIn(tensors).flatMap(({ cuts, names }) =>
      [...tensors.get(names[0]!)!].map(([path, part]) => {
        const other = names.find((name) => !isSameSpec(tensors.get(name)?.get(path), part));
        const dims = cuts.map(({ dim }) => dim);
        if (other !== undefined || dims.some((dim) => part.shape[dim] === undefined))
          throw new CheckpointError(
            `${folder}: ${path} in ${other ?? names[0]} does not match the part along dimension ${dims.join(" and ")} in ${names[0]}, ${formatSpec(part)}; resume from another run`,
          );
        return [path, wholeSpec(part, cuts)] as const;
      }),
    ),
  ]);

const isSameSpec = (one: TensorSpec | undefined, other: TensorSpec): boolean =>
  one !== undefined && sameSpec(one, other);

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

/**
 * Traces the user parts of a step, so that a fault is reported once before the start, instead of by every rank.
 *
 * @throws ModuleError.
 */
const traceOwnParts = (parts: Parts, specs: TrainState<TensorSpec>, totalSteps: number): void => {
  trace(
    (state: TrainState<Tensor>) => {
      const options = exchangeOptions(parts, parts.compressorAt(totalSteps - 1), state);
      const [mean] = exchange(state.params, state.residuals, options);
      const [updates, optimizer] = parts.optimizer.update(mean, state.optimizer, { params: state.params });
      return [updates, optimizer, parts.learningRateOf(optimizer)];
    },
    [specs as never],
    { mesh: parts.mesh },
  );
};

/** Requires that evaluations of the run have the metric that they are compared by. @throws ConfigError. */
const requireComparable = ({ evaluation: { compareBy } }: Job, figures: object): void => {
  if (compareBy === undefined || Object.hasOwn(figures, compareBy.figure)) return;
  throw new ConfigError([
    `evaluation.compareBy: ${excerpt(compareBy.figure)} is not a metric that evaluations of this run can be compared by; use one of: ${Object.keys(figures).join(", ")}`,
  ]);
};

/** Loads the data of a job, and checks all rules that need the data. @throws DataError, ConfigError, ModuleError. */
export const prepare = async (requested: Job, given: Given = {}): Promise<Prepared> => {
  const loaded: TrainingData = given.data ?? (await buildData(requested.data));
  const data = withCheckpointClasses(loaded, requested);
  const job = withHeadFor(requested, taskOf(data));
  requireFull(data.train, job.batch);
  const perEpoch = stepsPerEpoch(data.train.count, job.batch);
  const totalSteps = totalStepsOf(job, perEpoch);
  if (totalSteps > mostSteps)
    throw new ConfigError([
      `epochs: ${job.epochs} of ${perEpoch} steps are ${totalSteps} steps, at most ${mostSteps} can be counted; lower it`,
    ]);
  const model = await buildModel(job, taskOf(data), {
    given: given.model && modelOf(given.model),
    program: given.parts?.parts,
  });
  requireValues(job, data, model);
  const isOwnModel = job.model.kind === "module" || job.metrics !== undefined;
  // traced here so that a fault is reported once, instead of by every rank; a program's model was traced before
  const traced = given.model ?? (isOwnModel ? traceModel(model, data, job) : undefined);
  if (traced === undefined) requireSmoothing(model, data, job);
  else
    requireSharedState(traced, job, job.model.kind === "module" ? moduleName("model", job.model) : givenName("model"));
  requireComparable(job, comparedFigures(data.predicts, model.metrics));
  const own = await loadOwnParts(job, { totalSteps }, given.parts?.parts);
  const isShared = own.optimizer !== undefined && sharesOut(job);
  if (isShared) requireDeclared(own.optimizer, job);
  const built = buildParts({ job, model, totalSteps, train: data.train, own });
  const { sharding, mesh } = built;
  const specs = stateSpecs(built);
  if (isShared) {
    const what = job.optimizer.kind === "module" ? moduleName("optimizer", job.optimizer) : givenName("optimizer");
    requireStateByParameter(specs, { ...built, axisOf: replicasAxisOf(built) }, what);
    await requireElementwise(own.optimizer, trainedOf(built, specs.params), what);
  }
  if (Object.keys(own).length > 0) traceOwnParts(built, specs, totalSteps);
  // The job's own options of images are in its hash anyway.
  const digest = isUserData(job.data)
    ? dataDigest("augment" in job.data ? { ...data, augmentation: undefined } : data)
    : undefined;
  const saved = splitLeaves(specs, built);
  const whole = wholeSpecs(saved, stateSharding(sharding, specs.params), mesh);
  const stateBytes = [
    ...[saved.shared, saved.own, ...saved.parts.map(({ leaves }) => leaves)].flatMap((leaves) => [...leaves.values()]),
    ...[...saved.slices.values()].map(({ leaf }) => leaf),
  ].reduce((sum, spec) => sum + byteLength(spec), 0);
  const trained = trainedOf(built, specs.params);
  requireRoom({ job, stateBytes, trained });
  const weights = { params: specs.params, state: specs.model };
  const samplePass = traced === undefined ? samplePassOf(job, model, data, weights) : traced.outputs;
  return {
    job,
    data,
    model,
    traced: given.model,
    given: given.parts,
    stepsPerEpoch: perEpoch,
    totalSteps,
    stepOffset: 0,
    own,
    whole,
    ownLeaves: saved.own,
    stateBytes,
    sharding,
    params: specs.params,
    trained,
    trainedHash: sha256(specsText(leavesByPath<TensorSpec>(trained))).slice(0, 16),
    modelState: specs.model,
    modelHash: sha256(specsText(whole)),
    ...settingsOf(job, digest, decoderOf(data.train)),
    dataDigest: digest,
    sampleKind: samplePass && sampleKindOf(samplePass, data),
    remarks: [...(data.remarks ?? []), ...coverageRemarks(data, evaluatedOn(job.data)), ...remarksOn(job, totalSteps)],
  };
};

/**
 * Returns the prepared job with its backend resolved. Data and shapes do not depend on the backend.
 *
 * @throws ConfigError if the backend's memory is too small.
 */
export const withBackend = (prepared: Prepared, backend: Job["backend"]): Prepared => {
  const job = { ...prepared.job, backend };
  requireRoom({ ...prepared, job });
  return { ...prepared, job, ...settingsOf(job, prepared.dataDigest, decoderOf(prepared.data.train)) };
};

/**
 * Returns the job at the point where it resumes from a checkpoint, if any: its position in the samples, and the step at
 * which it ends. With `epochs` that step depends on the samples seen; `steps` counts steps done.
 */
export const resumedAt = (prepared: Prepared, manifest: Manifest | undefined): Prepared => {
  const { job, stepsPerEpoch: perEpoch } = prepared;
  const stepOffset =
    manifest === undefined
      ? 0
      : stepOffsetAfter(manifest.data, manifest.step, { batch: job.batch, stepsPerEpoch: perEpoch });
  return {
    ...prepared,
    stepOffset,
    totalSteps: Math.max(manifest?.step ?? 0, totalStepsOf(job, perEpoch) - scheduleOffsetOf(job, stepOffset)),
  };
};

/** Specs of the tensors that each rank has by itself, under a plan that was made when the run started, if any. */
const ownSpecs = (prepared: Prepared, plan: ExchangePlan | undefined): ReadonlyMap<string, TensorSpec>[] => {
  const parts = buildParts(partsInputOf(prepared, plan), plan);
  return Array.from(
    { length: prepared.job.ranks },
    (_, rank) => splitLeaves(stateSpecs(parts, placeOf(prepared.job, rank)), parts).own,
  );
};

/**
 * Checks that a run can resume from a checkpoint.
 *
 * @returns remarks for people: differences from an uninterrupted run.
 * @throws CheckpointError for a different model, or a different number of ranks if ranks have their own state.
 */
export const checkResumable = (prepared: Prepared, checkpoint: Checkpoint): string[] => {
  const { manifest, tensors, folder } = checkpoint;
  requireSameStream(manifest.data, prepared, folder);
  const { job, whole, jobHash } = prepared;
  const saved = tensors.get(sharedFile);
  if (saved === undefined) throw new CheckpointError(`${folder} has no ${sharedFile}; resume from another run`);
  requireSameTensors(savedSpecs(checkpoint, saved), whole, folder);
  const hasOwn = prepared.ownLeaves.size > 0 || [...tensors.keys()].some((name) => name.startsWith("rank-"));
  if (hasOwn && manifest.worldSize !== job.ranks) {
    throw new CheckpointError(
      `${folder} was written by ${manifest.worldSize} ranks, each with its own state (residuals or inverses), but the job has ${job.ranks}; resume with ${manifest.worldSize} ranks`,
    );
  }
  if (hasOwn)
    for (const [rank, own] of ownSpecs(prepared, wantedPlan(job, manifest.plan)).entries())
      requireSameTensors(tensors.get(rankFile(rank)) ?? new Map(), own, `${folder} (rank ${rank})`);
  return manifest.jobHash === jobHash
    ? []
    : [
        `the job differs from the one that wrote the checkpoint${differencesOf(manifest.job, prepared.jobSettings)}: this run will not equal an uninterrupted one`,
      ];
};
