import { denseBytes } from "@skein/compressors";
import type { Job } from "@skein/job/node";
import { buildParts, isPlanned, stateSpecs } from "@skein/step/node";
import { byteLength, elementCount, flattenTree, leafPaths, type TensorSpec } from "@skein/tensor-core";
import type { BackendName } from "../backend/backend.ts";
import type { BackendRates } from "../backend/backend-rates.ts";
import { measureJobRates } from "../backend/job-rates.ts";
import { partsInputOf } from "../preparation/prepared.ts";
import { prepareStep } from "../preparation/prepared-step.ts";
import { prepareOn } from "../run/run-job.ts";
import { predictStep, type StepPrediction } from "./step-prediction.ts";

/** Memory of one rank, in bytes. */
export interface RankMemory {
  readonly parameters: number;
  readonly optimizer: number;
  /** Bytes of running statistics, compressor residuals, and gradients in transit. */
  readonly other: number;
  /** Peak bytes of additional memory during a step: activations, gradients and message buffers. */
  readonly intermediates: number;
  /**
   * Bytes of the gradients of all trained parameters. `intermediates` includes the gradients that exist at the peak.
   */
  readonly gradients: number;
}

/** Forecast of a run before its first step. */
export interface RunForecast {
  readonly name: string;
  readonly model: string;
  /** Number of parameters of the complete model, including the shards of all ranks. */
  readonly parameters: number;
  /** Number of trained parameters. */
  readonly trainedParameters: number;
  /** Number of training samples; null for a stream. */
  readonly trainSamples: number | null;
  readonly judgedSamples: number;
  readonly batch: number;
  readonly steps: number;
  /** Number of steps per epoch; null for a stream. */
  readonly stepsPerEpoch: number | null;
  readonly backend: BackendName;
  readonly ranks: number;
  readonly transport: Job["transport"];
  readonly memory: RankMemory;
  readonly sentBytesPerStep: number;
  /** Bytes per step that a dense ring all-reduce of all gradients would send. */
  readonly denseBytesPerStep: number;
  readonly rates: BackendRates;
  readonly prediction: Omit<StepPrediction, "sentBytes">;
  /** Lower bound on the time of all steps in seconds. Excludes evaluations, checkpoints and time outside of kernels. */
  readonly runSeconds: number;
  /** Remarks for the user about the job, and about the limits of the forecast. */
  readonly remarks: readonly string[];
}

const bytesOf = (tree: unknown): number =>
  flattenTree<TensorSpec>(tree).leaves.reduce((sum, spec) => sum + byteLength(spec), 0);

const unplanned =
  "the exchange is planned from measurements before the first step; this forecast assumes the initial plan: each tensor by itself";

/** Returns null for infinite counts, which streams have, and other counts unchanged. */
const orNull = (count: number): number | null => (Number.isFinite(count) ? count : null);

/**
 * Prepares a job as a run does, plans its step, and measures the backend for a short time. Writes no files and runs no
 * step.
 *
 * @throws errors of a run before its first step.
 */
export const forecastRun = async (job: Job): Promise<RunForecast> => {
  const { prepared, notes } = await prepareOn({ job });
  const { data, totalSteps, stepsPerEpoch, whole, trained } = prepared;
  const backend = prepared.job.backend as BackendName; // set by prepareOn
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
