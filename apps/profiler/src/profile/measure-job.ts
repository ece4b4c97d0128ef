import { alignClocks, type WorldStep, worldSteps } from "@skein/report";
import type { ComputeDevice } from "@skein/cost-model/hardware";
import type { KernelSample } from "@skein/cost-model/calibration";
import { type StepProgram, collectivePricers, stepProgram } from "@skein/cost-model/pricing";
import type { RankSpans } from "@skein/tensor-core";
import type { ExchangePlan, PreparedStep, ProfiledJob } from "skein-train/profiling";
import { kernelSamples } from "./kernel-samples.ts";
import { spanOverheadSeconds } from "./span-overhead.ts";

/** A job with measurements of several steps. */
export interface MeasuredJob {
  readonly ranks: readonly RankSpans[];
  /** Plan of the exchange, made before the first step. Undefined: the exchange is not planned. */
  readonly plan: ExchangePlan | undefined;
  /** Measured steps, after the warm-up. */
  readonly steps: readonly WorldStep[];
  /** Step that was run, prepared with `plan`. */
  readonly step: PreparedStep;
  readonly overheadSeconds: number;
  /** Returns one timing sample per kernel of the step: the operator, its amount of work, and the measured seconds. */
  samples(): KernelSample[];
  /** Returns the program of the step, with the predicted time of each operation on a device. */
  programOn(device: ComputeDevice): StepProgram;
}

/**
 * Predicts the time of each operation of a job's step on a device. Collectives use default links if the job has no link
 * file.
 */
export const programOn = (job: ProfiledJob, step: PreparedStep, device: ComputeDevice): StepProgram =>
  stepProgram(step, {
    device,
    collectives: collectivePricers(
      Object.fromEntries(Object.entries(job.groups()).map(([axis, { situation }]) => [axis, situation])),
      device.readBack,
    ),
  });

/** Runs a job for some steps. The first `warmUpSteps` steps are not measured. */
export const measureJob = async (
  job: ProfiledJob,
  {
    steps,
    warmUpSteps,
    signal,
  }: { readonly steps: number; readonly warmUpSteps: number; readonly signal?: AbortSignal },
): Promise<MeasuredJob> => {
  const { ranks, plan } = await job.run(warmUpSteps + steps, signal && { signal });
  const step = job.step(plan);
  const overheadSeconds = spanOverheadSeconds();
  const counted = worldSteps(alignClocks(ranks)).slice(warmUpSteps);
  return {
    ranks,
    plan,
    steps: counted,
    step,
    overheadSeconds,
    programOn: (device) => programOn(job, step, device),
    samples: () => kernelSamples(counted, step, overheadSeconds),
  };
};
