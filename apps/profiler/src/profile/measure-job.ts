import { alignClocks, type WorldStep, worldSteps } from "@skein/report";
import type { Device, KernelSample, StepProgram } from "@skein/cost-model";
import { collectivePricers, stepProgram } from "@skein/cost-model";
import type { RankSpans } from "@skein/tensor-core";
import type { ExchangePlan, PreparedStep, ProfiledJob } from "skein-train/profiling";
import { kernelSamples } from "./kernel-samples.ts";
import { spanOverheadSeconds } from "./span-overhead.ts";

/** A job that was run for some steps. */
export interface MeasuredJob {
  readonly ranks: readonly RankSpans[];
  /** Decided before the first step, where the exchange is planned. */
  readonly plan: ExchangePlan | undefined;
  /** Those that count. */
  readonly steps: readonly WorldStep[];
  /** As it was run, with what was planned before its first step. */
  readonly step: PreparedStep;
  readonly overheadSeconds: number;
  /** Kernels of the step, each with what it took. */
  samples(): KernelSample[];
  /** The step with its prices on a device. */
  programOn(device: Device): StepProgram;
}

/**
 * A step of a job with its prices on a device. Collectives by links that nobody measured, unless the job names some.
 */
export const programOn = (job: ProfiledJob, step: PreparedStep, device: Device): StepProgram =>
  stepProgram(step, {
    device,
    collectives: collectivePricers(
      Object.fromEntries(Object.entries(job.groups()).map(([axis, { situation }]) => [axis, situation])),
      device.readBack,
    ),
  });

/** Run a job for some steps, the first of which do not count. */
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
