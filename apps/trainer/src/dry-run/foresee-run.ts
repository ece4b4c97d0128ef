import { denseBytes } from "@skein/compressors";
import { byteLength, elementCount, flattenTree, leafPaths, type TensorSpec } from "@skein/tensor-core";
import type { BackendName } from "../backend/backend.ts";
import type { BackendRates } from "../backend/backend-rates.ts";
import type { Job } from "../job/job.ts";
import { measureJobRates } from "../backend/job-rates.ts";
import { isPlanned } from "../plans/exchange-plan.ts";
import { partsInputOf } from "../preparation/prepare.ts";
import { prepareStep } from "../preparation/prepared-step.ts";
import { prepareOn } from "../run/run-job.ts";
import { buildParts, stateSpecs } from "../step/train-state.ts";
import { predictStep, type StepPrediction } from "./step-prediction.ts";

/** Bytes that a rank holds. */
export interface RankMemory {
  readonly parameters: number;
  readonly optimizer: number;
  /** Running statistics of the model, residuals of compressors, gradients on their way. */
  readonly other: number;
  /** Most of what a step holds at a time beside all that: activations, gradients, room of messages. */
  readonly intermediates: number;
  /**
   * One for each parameter that is trained; the plan of the intermediates has room for those that are there at a time.
   */
  readonly gradients: number;
}

/** All that is known of a run before its first step. */
export interface ForeseenRun {
  readonly name: string;
  readonly model: string;
  /** Numbers of the whole model, of all ranks that share it out. */
  readonly parameters: number;
  /** Of those, what is trained. */
  readonly trainedParameters: number;
  /** Null of a stream, of which nobody knows it. */
  readonly trainSamples: number | null;
  readonly judgedSamples: number;
  readonly batch: number;
  readonly steps: number;
  /** Null of a stream. */
  readonly stepsPerEpoch: number | null;
  readonly backend: BackendName;
  readonly ranks: number;
  readonly transport: Job["transport"];
  readonly memory: RankMemory;
  readonly sentBytesPerStep: number;
  /** What a dense ring all-reduce of all gradients would send. */
  readonly denseBytesPerStep: number;
  readonly rates: BackendRates;
  readonly prediction: Omit<StepPrediction, "sentBytes">;
  /** Of all steps, at least: evaluations, checkpoints, and what steps do outside of kernels, are not in it. */
  readonly runSeconds: number;
  /** What people are told beside: remarks on the job, and what the figures do not know. */
  readonly remarks: readonly string[];
}

const bytesOf = (tree: unknown): number =>
  flattenTree<TensorSpec>(tree).leaves.reduce((sum, spec) => sum + byteLength(spec), 0);

const unplanned =
  "something of the exchange is decided by measurements before the first step; these figures are of what the run begins from: each tensor by itself";

/** Of what a stream has without end. */
const orNull = (count: number): number | null => (Number.isFinite(count) ? count : null);

/**
 * Look at a job as a run would, down to the planned step, and measure its backend for a moment. Nothing is written and
 * no step is made.
 *
 * @throws what a run of the job throws before its first step.
 */
export const foreseeRun = async (job: Job): Promise<ForeseenRun> => {
  const { prepared, notes } = await prepareOn({ job });
  const { data, totalSteps, stepsPerEpoch, whole, trained } = prepared;
  const backend = prepared.job.backend as BackendName; // settled by prepareOn
  const { rates, device } = await measureJobRates(prepared.job, backend);
  const step = prepareStep(prepared, device);
  const compiled = job.accumulate === undefined ? step : prepareStep(prepared, device, { alone: true });
  const { params, optimizer, ...rest } = stateSpecs(buildParts(partsInputOf(prepared)));
  const numbersOf = (paths: readonly string[]): number =>
    paths.reduce((sum, path) => sum + elementCount(whole.get(`params.${path}`)!.shape), 0);
  const { sentBytes, ...prediction } = predictStep(prepared.job, step, { rates, device });
  return {
    name: job.name,
    model: job.model.kind,
    parameters: numbersOf(leafPaths(params)),
    trainedParameters: numbersOf(leafPaths(trained)),
    trainSamples: orNull(data.train.count),
    judgedSamples: data.test.count,
    batch: job.batch,
    steps: totalSteps,
    stepsPerEpoch: orNull(stepsPerEpoch),
    backend,
    ranks: job.ranks,
    transport: job.transport,
    memory: {
      parameters: bytesOf(params),
      optimizer: bytesOf(optimizer),
      other: bytesOf(rest),
      intermediates: compiled.plan.workspaceBytes,
      gradients: bytesOf(trained),
    },
    sentBytesPerStep: sentBytes,
    denseBytesPerStep: denseBytes(trained, job.ranks),
    rates,
    prediction,
    runSeconds: totalSteps * (prediction.stepSeconds ?? prediction.computeSeconds),
    remarks: [...prepared.remarks, ...notes, ...(isPlanned(prepared.job) ? [unplanned] : [])],
  };
};
