import { type Records, stepsPerEpoch } from "@skein/data";
import { byteLength, flattenTree, type Sharding, type TensorSpec } from "@skein/tensor-core";
import type { Model } from "@skein/models";
import { buildData, buildModel } from "./build.ts";
import { type Checkpoint, expertsFilesIn, rankFile, requireSameTensors, sharedFile, specsText } from "./checkpoint.ts";
import { sha256 } from "./checkpoint-part.ts";
import { CheckpointError, ConfigError } from "./errors.ts";
import { type ExchangePlan, isExchangePlanned } from "./planning/exchange-plan.ts";
import { placeOf } from "./mesh.ts";
import type { DataJob, ExpertsJob, Job, ModelJob } from "./job.ts";
import { dataDigest } from "./modules/data-digest.ts";
import { type DataSet, taskOf } from "./modules/task.ts";
import { modelOf, type TracedModel, traceModel } from "./modules/traced-model.ts";
import { buildParts, type PartsInput, splitLeaves, stateSpecs, totalStepsOf } from "./train-state.ts";

/** A job with its data loaded and every rule checked that needs them. Nothing is written yet. */
export interface Prepared {
  readonly job: Job;
  readonly data: DataSet;
  readonly model: Model;
  /** The model, where a program gave it: the threads of ranks take it from here. */
  readonly traced: TracedModel | undefined;
  readonly stepsPerEpoch: number;
  readonly totalSteps: number;
  /** Specs of what a checkpoint holds, by name. */
  readonly shared: ReadonlyMap<string, TensorSpec>;
  readonly own: ReadonlyMap<string, TensorSpec>;
  /** Whole, of what ranks share out. */
  readonly parts: ReadonlyMap<string, TensorSpec>;
  readonly sharding: Sharding;
  /** Specs of the parameters. */
  readonly params: unknown;
  readonly modelHash: string;
  readonly jobHash: string;
  /** Of the samples, where they are the user's own. */
  readonly dataDigest: string | undefined;
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

/** Without the places of files: what counts is their content. */
const placeless = (part: DataJob | ModelJob): object =>
  Object.fromEntries(Object.entries(part).filter(([key]) => key !== "file" && key !== "folder"));

/**
 * Hash of what steers the training: same hash and same step, same bits. @param data digest of the samples, where their
 * kind does not say which they are.
 */
export const jobHashOf = (job: Job, data?: string): string => {
  const steered = { ...job, data: placeless(job.data), model: placeless(job.model) };
  const entries = steering.map((name): [string, unknown] => [name, steered[name]]);
  // With fused multiply-add, what is fused with what has a say in how it is rounded.
  if (job.memory.recompute !== "none") entries.push(["memory", job.memory]);
  return sha256(JSON.stringify(Object.fromEntries(data === undefined ? entries : [...entries, ["samples", data]])));
};

/**
 * Whether the samples lie in files of the user's, which may change. Those of a program have their digest in the job.
 */
const isOwn = (job: DataJob): boolean =>
  job.kind === "text" || job.kind === "module" || ("folder" in job && job.folder !== undefined);

const requireFull = (train: Records, batch: number): void => {
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
export const bytesOf = (specs: Iterable<TensorSpec>): number =>
  [...specs].reduce((sum, spec) => sum + byteLength(spec), 0);

/**
 * Price what a rank keeps before anything is made room for: its state, and a gradient of each parameter. Activations
 * come on top of it; the memory plan of the compiled step knows them.
 */
const requireRoom = ({ job, shared, own, params }: Pick<Prepared, "job" | "shared" | "own" | "params">): void => {
  if (job.backend !== "cpu") return; // a device says itself what it has no room for
  const ranks = job.transport === "threads" ? job.ranks : job.network.ranksPerProcess;
  const needed =
    ranks * (bytesOf(shared.values()) + bytesOf(own.values()) + bytesOf(flattenTree<TensorSpec>(params).leaves));
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
  const gate = "experts" in job.model ? job.model.experts?.gate : undefined;
  return [
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
    ...(isExchangePlanned(job) && job.compression.kind !== "identity"
      ? [
          `buckets are planned from measurements, so two runs of ${job.compression.kind} may differ; checkpoints keep the plan`,
        ]
      : []),
  ];
};

/** What `numParts` ranks have along dimension 0, as a whole. */
const wholeSpecs = (parts: ReadonlyMap<string, TensorSpec>, numParts: number): Map<string, TensorSpec> =>
  new Map(
    [...parts].map(
      ([
        path,
        {
          dtype,
          shape: [rows, ...rest],
        },
      ]) => [path, { dtype, shape: [rows! * numParts, ...rest] }],
    ),
  );

/** What the parts in the files of a checkpoint are as a whole. */
const savedParts = (tensors: Checkpoint["tensors"]): Map<string, TensorSpec> => {
  const parts = expertsFilesIn(tensors);
  return parts.length === 0 ? new Map() : wholeSpecs(tensors.get(parts[0]!)!, parts.length);
};

/** What a program gave in place of names. */
export interface Given {
  readonly data?: DataSet | undefined;
  readonly model?: TracedModel | undefined;
}

export const partsInputOf = ({ job, model, totalSteps, data }: Prepared): PartsInput => ({
  job,
  model,
  totalSteps,
  train: data.train,
});

/** @throws DataError, ConfigError, ModuleError. */
export const prepare = async (job: Job, given: Given = {}): Promise<Prepared> => {
  const data = given.data ?? (await buildData(job.data));
  requireFull(data.train, job.batch);
  const perEpoch = stepsPerEpoch(data.train.count, job.batch);
  const totalSteps = totalStepsOf(job, perEpoch);
  if (totalSteps > mostSteps)
    throw new ConfigError([
      `epochs: ${job.epochs} of ${perEpoch} steps are ${totalSteps} steps, at most ${mostSteps} can be counted; lower it`,
    ]);
  const model = await buildModel(job, taskOf(data), given.model && modelOf(given.model));
  // what is wrong with it is told once and at once, not by every rank
  if (job.model.kind === "module") traceModel(model, data, job);
  const built = buildParts({ job, model, totalSteps, train: data.train });
  const { sharding } = built;
  const specs = stateSpecs(built);
  const digest = isOwn(job.data) ? dataDigest(data) : undefined;
  const { shared, own, parts } = splitLeaves(specs, sharding);
  const whole = wholeSpecs(parts, job.mesh.expert);
  requireRoom({ job, shared, own, params: specs.params });
  return {
    job,
    data,
    model,
    traced: given.model,
    stepsPerEpoch: perEpoch,
    totalSteps,
    shared,
    own,
    parts: whole,
    sharding,
    params: specs.params,
    modelHash: sha256(specsText(new Map([...shared, ...whole]))),
    jobHash: jobHashOf(job, digest),
    dataDigest: digest,
    remarks: remarksOn(job, totalSteps),
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
  return { ...prepared, job, jobHash: jobHashOf(job, prepared.dataDigest) };
};

/** Specs of what each rank has alone, under a plan that was made when the run began, if any. */
const ownSpecs = (prepared: Prepared, plan: ExchangePlan | undefined): ReadonlyMap<string, TensorSpec>[] => {
  const parts = buildParts(partsInputOf(prepared), plan);
  return Array.from(
    { length: prepared.job.ranks },
    (_, rank) => splitLeaves(stateSpecs(parts, placeOf(prepared.job, rank)), prepared.sharding).own,
  );
};

/**
 * Check that a run can go on from a checkpoint.
 *
 * @returns remarks for people: what will not be as if the run had never stopped.
 * @throws CheckpointError for another model, or another number of ranks where ranks have a state of their own.
 */
export const checkResumable = (prepared: Prepared, { manifest, tensors, folder }: Checkpoint): string[] => {
  const { job, shared, jobHash } = prepared;
  const saved = tensors.get(sharedFile);
  if (saved === undefined) throw new CheckpointError(`${folder} has no ${sharedFile}; resume from another run`);
  requireSameTensors(saved, shared, folder);
  requireSameTensors(savedParts(tensors), prepared.parts, folder);
  const hasOwn = prepared.own.size > 0 || [...tensors.keys()].some((name) => name.startsWith("rank-"));
  if (hasOwn && manifest.worldSize !== job.ranks) {
    throw new CheckpointError(
      `${folder} was written by ${manifest.worldSize} ranks, each with residuals of its own, but the job has ${job.ranks}; resume with ${manifest.worldSize} ranks`,
    );
  }
  if (hasOwn)
    for (const [rank, own] of ownSpecs(prepared, manifest.plan).entries())
      requireSameTensors(tensors.get(rankFile(rank)) ?? new Map(), own, `${folder} (rank ${rank})`);
  return manifest.jobHash === jobHash
    ? []
    : ["the job differs from the one that wrote the checkpoint: this run will not equal an uninterrupted one"];
};
