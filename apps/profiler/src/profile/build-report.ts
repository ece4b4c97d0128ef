import type { ComputeDevice } from "@skein/cost-model/hardware";
import type { StepProgram } from "@skein/cost-model/pricing";
import { medianBy } from "@skein/measuring";
import { type ProfileReport, timelineOf, worldSeconds } from "@skein/report";
import { ArgumentError, type RankSpans } from "@skein/tensor-core";
import type { JobFacts, PreparedStep } from "skein-train/profiling";
import { adviceOn } from "./advice.ts";
import { collectiveRows } from "./collective-rows.ts";
import { memoryProfile } from "./memory-profile.ts";
import { operatorRows } from "./operator-rows.ts";
import type { MeasuredJob } from "./measure-job.ts";
import { recordingCost, stepShares } from "./step-shares.ts";
import { timesOf } from "./times.ts";

/** A compiled step with the predicted time of each operation. A trace does not contain this data. */
export interface PricedStep {
  readonly step: PreparedStep;
  readonly stateBytes: number;
  readonly program: StepProgram;
  readonly device: ComputeDevice;
}

/** Input from which a profile report is built. */
export interface ProfileInput {
  readonly facts: Pick<JobFacts, "name" | "ranks" | "samplesPerStep" | "kernelClock"> & { readonly backend: string };
  readonly measured: Pick<MeasuredJob, "steps" | "overheadSeconds">;
  /**
   * Compiled step with predicted times, from which flops, roofline, memory and predictions are computed. Absent: the
   * report does not contain these values.
   */
  readonly priced?: PricedStep | undefined;
  /** Number of steps at the start of the run that are excluded from the report. */
  readonly warmUpSteps: number;
  readonly madeAt: Date;
  readonly machine: string;
  /** Simulated step. Absent: the report has no prediction. */
  readonly predicted?: { readonly ranks: readonly RankSpans[]; readonly stepSeconds: number } | undefined;
}

const deviceOf = ({ name, flopsPerSecond, memoryBytesPerSecond }: ComputeDevice): ProfileReport["device"] => ({
  name,
  flopsPerSecond: flopsPerSecond.f32,
  bytesPerSecond: memoryBytesPerSecond,
});

const clockDescriptions: Readonly<Record<JobFacts["kernelClock"], string>> = {
  host: "kernels by this machine's clock, less what looking at it costs",
  device: "kernels by the device's own clock (timestamp queries); the host's work for them lies between them",
  none: "this adapter has no timestamp queries: a step is one span, and no operator has a time of its own",
};

/**
 * Builds a report from the spans of a run.
 *
 * @throws ArgumentError if all steps are warm-up steps.
 */
export const buildReport = (input: ProfileInput): ProfileReport => {
  const { facts, measured, priced, warmUpSteps, predicted } = input;
  const { steps, overheadSeconds } = measured;
  const program = priced?.program ?? [];
  if (steps.length === 0)
    throw new ArgumentError(
      `no step is left after the first ${warmUpSteps}, which are warm-up; make more steps, or use a shorter --warm-up`,
    );
  // Subtracts the cost of recording: the host thread read its clock twice per span.
  const overheads = steps.map((ranks) => overheadSeconds * Math.max(...ranks.map(({ spans }) => spans.length)));
  const times = timesOf(steps.map((one, i) => worldSeconds(one) - overheads[i]!));
  const cost = recordingCost(overheadSeconds, facts.kernelClock);
  const shares = stepShares(steps, cost);
  const report: Omit<ProfileReport, "advice"> = {
    format: "skein-profile",
    version: 1,
    job: facts.name,
    madeAt: input.madeAt.toISOString(),
    machine: input.machine,
    backend: facts.backend,
    ranks: facts.ranks,
    steps: steps.length,
    warmUpSteps,
    samplesPerStep: facts.samplesPerStep,
    step: times,
    exposedSeconds: shares.exposedSeconds,
    predictedStepSeconds: predicted?.stepSeconds,
    device: priced && deviceOf(priced.device),
    operators: operatorRows(steps, program, { shares: shares.operators, inKernelSeconds: cost.inKernelSeconds }),
    outside: shares.outside,
    clock: clockDescriptions[facts.kernelClock],
    collectives: collectiveRows(steps, program),
    memory: priced && memoryProfile(priced.step, priced.stateBytes),
    timeline: timelineOf(medianBy(steps, worldSeconds)!),
    predicted: predicted?.ranks,
  };
  return { ...report, advice: adviceOn(report) };
};
