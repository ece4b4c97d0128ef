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
import { requireSameStream, stepOffsetAfter } from "../checkpoint/data-standing.ts";
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

/** A job with its data loaded and every rule checked that needs them. Nothing is written yet. */
export interface Prepared {
  readonly job: Job;
  readonly data: TrainingData;
  readonly model: AnyModel;
  /** The model, where a program gave it: the threads of ranks take it from here. */
  readonly traced: TracedModel | undefined;
  /** Parts that a program gave. */
  readonly given: GivenParts | undefined;
  readonly stepsPerEpoch: number;
  /** Steps done when the run is over. */
  readonly totalSteps: number;
  /** Of a resumed run: see `stepOffsetAfter`. Otherwise 0. */
  readonly stepOffset: number;
  /** What modules of the job make of its training step. */
  readonly own: OwnParts;
  /** Specs of what a checkpoint holds of all ranks, by name; whole, also of what ranks share out. */
  readonly whole: ReadonlyMap<string, TensorSpec>;
  /** Of what a rank has alone. */
  readonly ownLeaves: ReadonlyMap<string, TensorSpec>;
  /** Bytes of what a rank has of all that. */
  readonly stateBytes: number;
  readonly sharding: Sharding;
  /** Specs of the parameters. */
  readonly params: unknown;
  /** Of those that are trained. */
  readonly trained: unknown;
  /** Hash of the paths, dtypes and shapes of the trained parameters, 16 hexadecimal digits. */
  readonly trainedHash: string;
  /** Specs of what the model moves itself. */
  readonly modelState: unknown;
  readonly modelHash: string;
  readonly jobHash: string;
  /** The settings under that hash, by dotted key: see `flatSettings`. */
  readonly jobSettings: Readonly<Record<string, string>>;
  /** Of the samples, where they are the user's own. */
  readonly dataDigest: string | undefined;
  /** As what samples are shown, where the job wants it and ranks do not share the model out. */
  readonly sampleKind: SampleKind | undefined;
  /** Settings without effect, told to people. */
  readonly remarks: readonly string[];
}

/** Settings that steer the training. */
const steering = [
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

/** Of what counts is the content: places of files, and what says when and how fast they are decoded. */
const notSteering: readonly string[] = [
  "file",
  "testFile",
  "folder",
  "tokenizer",
  "cacheMegabytes",
  "decodesAtOnce",
  "preprocessor",
];

const steeringPart = (part: object): object =>
  Object.fromEntries(Object.entries(part).filter(([key]) => !notSteering.includes(key)));

/**
 * What steers the training: with the same of it and the same step, the same bits.
 *
 * @param data digest of the samples, where their kind does not say which they are.
 * @param decoder what makes samples of the bytes under that digest, where it is of encoded ones.
 */
const steeringOf = (job: Job, data?: string, decoder?: string): Readonly<Record<string, unknown>> => {
  const steered = {
    ...withoutModulePlaces(job),
    data: steeringPart(hashedData(job.data)),
    model: steeringPart(job.model),
  };
  const entries = steering.map((name): [string, unknown] => [name, steered[name]]);
  // With fused multiply-add, what is fused with what has a say in how it is rounded.
  if (job.memory.recompute !== "none") entries.push(["memory", job.memory]);
  // In which order numbers are added up.
  const { expert, tensor } = job.mesh;
  if (expert * tensor > 1) entries.push(["mesh", { expert, tensor }]);
  if (job.accumulate !== undefined && job.accumulate > 1) entries.push(["accumulate", job.accumulate]);
  if (job.average !== undefined) entries.push(["average", job.average]);
  for (const name of ["freeze", "rates", "weightDecays", "labelSmoothing"] as const)
    if (job[name] !== undefined) entries.push([name, job[name]]);
  if (job.zero === 1 && job.ranks > 1) entries.push(["zero", job.zero]);
  // Until version 2 validation samples were the last ones of all data.
  if (job.data.validationFraction !== undefined) entries.push(["validation", 2]);
  if (data !== undefined) entries.push(["samples", data]);
  if (decoder !== undefined) entries.push(["decoder", decoder]);
  return Object.fromEntries(entries);
};

type SteeringInput = Parameters<typeof steeringOf>;

/** Hash of what steers the training. */
export const jobHashOf = (...input: SteeringInput): string => sha256(JSON.stringify(steeringOf(...input)));

/** What a manifest keeps of that: its hash, and each setting by its dotted key, for messages. */
const settingsOf = (...input: SteeringInput): Pick<Prepared, "jobHash" | "jobSettings"> => ({
  jobHash: jobHashOf(...input),
  jobSettings: flatSettings(steeringOf(...input)),
});

/**
 * Whether the samples lie in files of the user's, which may change. Those of a program have their digest in the job.
 */
const isOwn = (job: DataJob): boolean =>
  "file" in job || ("folder" in job && job.folder !== undefined) || ("tokenizer" in job && job.tokenizer !== undefined);

const requireFull = (train: SampleSpecs, batch: number): void => {
  if (batch > train.count)
    throw new ConfigError([
      `batch: ${batch} samples cannot be drawn from ${train.count} training samples; use a batch of at most ${train.count}`,
    ]);
};

/** Addresses of WebAssembly have 32 bits, and the ranks of a process share one memory. */
const cpuMemoryBytes = 2 ** 32;

/** Steps are counted in a u32 of the state. */
const mostSteps = 2 ** 32 - 1;

/** Bytes of tensors together. */
const bytesOf = (specs: Iterable<TensorSpec>): number => [...specs].reduce((sum, spec) => sum + byteLength(spec), 0);

/**
 * Price what a rank keeps before anything is made room for: its state, and a gradient of each trained parameter.
 * Activations come on top of it; the memory plan of the compiled step knows them.
 */
const requireRoom = ({ job, stateBytes, trained }: Pick<Prepared, "job" | "stateBytes" | "trained">): void => {
  if (job.backend !== "cpu") return; // a device says itself what it has no room for
  const ranks = job.transport === "threads" ? job.ranks : job.network.ranksPerProcess;
  const needed = ranks * (stateBytes + bytesOf(flattenTree<TensorSpec>(trained).leaves));
  if (needed <= cpuMemoryBytes) return;
  const inGiB = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
  throw new ConfigError([
    `model: parameters, optimizer state and gradients of ${ranks} ${ranks === 1 ? "rank takes" : "ranks take"} ${inGiB(needed)}, but the CPU backend's memory of a process is ${inGiB(cpuMemoryBytes)}; use a smaller model, fewer ranks in a process, or backend: webgpu`,
  ]);
};

/** Gates in which a token's experts depend on all tokens of a batch, those after it in its own text included. */
const seesLater: readonly ExpertsJob["gate"][] = ["expert-choice", "soft"];

const remarksOn = (job: Job, totalSteps: number): string[] => {
  const { decay, warmupSteps } = job.learningRate;
  const gate = expertsOf(job)?.gate;
  return [
    ...preprocessorRemarks(job),
    ...(job.data.judgeBy === "training"
      ? ["data.judgeBy: training: the run is judged by the samples that it learns; its figures say nothing of others"]
      : []),
    ...(gate !== undefined && seesLater.includes(gate)
      ? [
          `model.experts.gate: with ${gate} later tokens have a say in the prediction of earlier ones, so losses are lower than those of text that is generated; use another gate for a language model`,
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
      ? ["model.experts.shards has no effect: with mesh.tensor: 1 no ranks share out what is inside of an expert"]
      : []),
    ...(job.zero === 1 && job.ranks === 1 ? ["zero has no effect: there is one rank"] : []),
    ...(isExpertsPlanned(job)
      ? [
          "how tokens travel to experts is planned from measurements, so two runs may differ in the last bits; checkpoints keep the plan",
        ]
      : []),
    ...(isExchangePlanned(job) && job.compression.kind !== "identity"
      ? [
          `buckets are planned from measurements, so two runs of ${job.compression.kind} may differ; checkpoints keep the plan`,
        ]
      : []),
  ];
};

/** What all ranks have together of leaves that they share out, as wholes. */
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
 * What the files of a checkpoint hold of all ranks, as wholes.
 *
 * @throws CheckpointError where parts do not fit together.
 */
const savedSpecs = (
  { folder, tensors }: Checkpoint,
  shared: ReadonlyMap<string, TensorSpec>,
): Map<string, TensorSpec> =>
  new Map([
    ...shared,
    ...shardFilesIn(tensors).flatMap(({ cuts, names }) =>
      [...tensors.get(names[0]!)!].map(([path, part]) => {
        const other = names.find((name) => !isAlike(tensors.get(name)?.get(path), part));
        const dims = cuts.map(({ dim }) => dim);
        if (other !== undefined || dims.some((dim) => part.shape[dim] === undefined))
          throw new CheckpointError(
            `${folder}: ${path} in ${other ?? names[0]} is no part along dimension ${dims.join(" and ")} like that in ${names[0]}, ${formatSpec(part)}; resume from another run`,
          );
        return [path, wholeSpec(part, cuts)] as const;
      }),
    ),
  ]);

const isAlike = (one: TensorSpec | undefined, other: TensorSpec): boolean => one !== undefined && sameSpec(one, other);

/** What a program gave in place of names. */
export interface Given {
  readonly data?: TrainingData | undefined;
  readonly model?: TracedModel | undefined;
  readonly parts?: GivenParts | undefined;
  readonly callbacks?: unknown;
}

/** @param plan of a run, where how tokens travel to experts follows from measurements. */
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
 * Trace what modules of the job make of a step: what is wrong with it is told once and at once, not by every rank.
 *
 * @throws ModuleError.
 */
const tryOwnParts = (parts: Parts, specs: TrainState<TensorSpec>, totalSteps: number): void => {
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

/** @throws ConfigError for a figure that evaluations of the run do not have. */
const requireComparable = ({ evaluation: { compareBy } }: Job, figures: object): void => {
  if (compareBy === undefined || Object.hasOwn(figures, compareBy.figure)) return;
  throw new ConfigError([
    `evaluation.compareBy: ${excerpt(compareBy.figure)} is no figure that evaluations of this run can be compared by; use one of: ${Object.keys(figures).join(", ")}`,
  ]);
};

/** @throws DataError, ConfigError, ModuleError. */
export const prepare = async (asked: Job, given: Given = {}): Promise<Prepared> => {
  const loaded: TrainingData = given.data ?? (await buildData(asked.data));
  const data = withCheckpointClasses(loaded, asked);
  const job = withHeadFor(asked, taskOf(data));
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
  // what is wrong with it is told once and at once, not by every rank; a program's was traced before
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
  if (Object.keys(own).length > 0) tryOwnParts(built, specs, totalSteps);
  // What the job itself says of images is in its hash anyway.
  const digest = isOwn(job.data)
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
 * The same job with its backend settled. Data and shapes do not depend on it.
 *
 * @throws ConfigError when it has no room for them.
 */
export const withBackend = (prepared: Prepared, backend: Job["backend"]): Prepared => {
  const job = { ...prepared.job, backend };
  requireRoom({ ...prepared, job });
  return { ...prepared, job, ...settingsOf(job, prepared.dataDigest, decoderOf(prepared.data.train)) };
};

/**
 * The job as it resumes from a checkpoint, if any: its place among the samples, and the step at which it is over. With
 * `epochs` that step follows the samples seen; `steps` counts steps done.
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

/** Specs of what each rank has alone, under a plan that was made when the run began, if any. */
const ownSpecs = (prepared: Prepared, plan: ExchangePlan | undefined): ReadonlyMap<string, TensorSpec>[] => {
  const parts = buildParts(partsInputOf(prepared, plan), plan);
  return Array.from(
    { length: prepared.job.ranks },
    (_, rank) => splitLeaves(stateSpecs(parts, placeOf(prepared.job, rank)), parts).own,
  );
};

/**
 * Check that a run can go on from a checkpoint.
 *
 * @returns remarks for people: what will not be as if the run had never stopped.
 * @throws CheckpointError for another model, or another number of ranks where ranks have a state of their own.
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
      `${folder} was written by ${manifest.worldSize} ranks, each with state of its own (residuals or inverses), but the job has ${job.ranks}; resume with ${manifest.worldSize} ranks`,
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
