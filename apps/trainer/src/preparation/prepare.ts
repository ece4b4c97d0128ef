import { cutsOf, specsText, wholeSpec } from "@skein/checkpoints/node";
import { ConfigError, sha256 } from "@skein/cli/node";
import { exchange } from "@skein/compressors";
import { decoderOf, type SampleSpecs, stepsPerEpoch } from "@skein/data";
import { type Job, replicasAxisOf } from "@skein/job/node";
import {
  buildParts,
  comparedFigures,
  coverageRemarks,
  evaluatedOn,
  exchangeOptions,
  type Parts,
  requireSmoothing,
  sampleKindOf,
  samplePassOf,
  type SavedLeaves,
  splitLeaves,
  stateSharding,
  stateSpecs,
  taskOf,
  totalStepsOf,
  trainedOf,
  type TrainingData,
  type TrainState,
  withCheckpointClasses,
} from "@skein/step/node";
import { type Mesh, type Sharding, type Tensor, type TensorSpec, trace } from "@skein/tensor-core";
import { excerpt, leavesByPath } from "@skein/tensor-core/backend";
import { buildData } from "./build-data.ts";
import { buildModel } from "./build-model.ts";
import { requireValues } from "./sample-values.ts";
import { requireDeclared, requireElementwise, requireStateByParameter, sharesOut } from "../modules/elementwise.ts";
import { requireSharedState } from "../modules/model-state.ts";
import { givenName } from "../modules/program-objects.ts";
import { moduleName } from "../modules/load-module.ts";
import { dataDigest } from "../modules/data-digest.ts";
import { loadOwnParts } from "../modules/own-parts.ts";
import { withHeadFor } from "../pretrained/pretrained-model.ts";
import { modelOf, traceModel } from "../modules/traced-model.ts";
import { settingsOf, isUserData } from "./job-hash.ts";
import { bytesOf, requireRoom } from "./memory-room.ts";
import { remarksOn } from "./remarks.ts";
import type { Prepared, Given } from "./prepared.ts";

const requireFull = (train: SampleSpecs, batch: number): void => {
  if (batch > train.count)
    throw new ConfigError([
      `batch: ${batch} samples cannot be drawn from ${train.count} training samples; use a batch of at most ${train.count}`,
    ]);
};

/** Maximum number of steps: the state counts steps as u32. */
const maxSteps = 2 ** 32 - 1;

/** Returns the specs of the complete tensors in a state, by name. Shards of a tensor are merged. */
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
 * Traces the user-defined functions of a step, so that an error is reported once before the start, instead of on every
 * rank.
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

/** Requires that evaluations of the run contain the metric named in `evaluation.compareBy`. @throws ConfigError. */
const requireComparable = ({ evaluation: { compareBy } }: Job, figures: object): void => {
  if (compareBy === undefined || Object.hasOwn(figures, compareBy.figure)) return;
  throw new ConfigError([
    `evaluation.compareBy: ${excerpt(compareBy.figure)} is not a metric that evaluations of this run can be compared by; use one of: ${Object.keys(figures).join(", ")}`,
  ]);
};

/**
 * Loads the data of a job, and checks all rules that depend on the data. @throws DataError, ConfigError, ModuleError.
 */
export const prepare = async (requested: Job, given: Given = {}): Promise<Prepared> => {
  const loaded: TrainingData = given.data ?? (await buildData(requested.data));
  const data = withCheckpointClasses(loaded, requested);
  const job = withHeadFor(requested, taskOf(data));
  requireFull(data.train, job.batch);
  const perEpoch = stepsPerEpoch(data.train.count, job.batch);
  const totalSteps = totalStepsOf(job, perEpoch);
  if (totalSteps > maxSteps)
    throw new ConfigError([
      `epochs: ${job.epochs} of ${perEpoch} steps are ${totalSteps} steps, at most ${maxSteps} can be counted; lower it`,
    ]);
  const model = await buildModel(job, taskOf(data), {
    given: given.model && modelOf(given.model),
    program: given.parts?.parts,
  });
  requireValues(job, data, model);
  const isOwnModel = job.model.kind === "module" || job.metrics !== undefined;
  // traced here so that an error is reported once, instead of on every rank; a model from a program is already traced
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
  // The job hash already covers the job's own image options.
  const digest = isUserData(job.data)
    ? dataDigest("augment" in job.data ? { ...data, augmentation: undefined } : data)
    : undefined;
  const saved = splitLeaves(specs, built);
  const whole = wholeSpecs(saved, stateSharding(sharding, specs.params), mesh);
  const stateBytes = bytesOf([
    ...[saved.shared, saved.own, ...saved.parts.map(({ leaves }) => leaves)].flatMap((leaves) => [...leaves.values()]),
    ...[...saved.slices.values()].map(({ leaf }) => leaf),
  ]);
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
 * Returns the prepared job with `backend: auto` replaced by a backend. Data and shapes do not depend on the backend.
 *
 * @throws ConfigError if the backend has too little memory.
 */
export const withBackend = (prepared: Prepared, backend: Job["backend"]): Prepared => {
  const job = { ...prepared.job, backend };
  requireRoom({ ...prepared, job });
  return { ...prepared, job, ...settingsOf(job, prepared.dataDigest, decoderOf(prepared.data.train)) };
};
