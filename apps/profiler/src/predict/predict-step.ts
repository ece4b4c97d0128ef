import {
  type HardwareFile,
  hostsOfGroup,
  type PreparedGraph,
  simulate,
  type SimulatedStep,
  type SimulatedWorld,
  type SimulationOptions,
  type StepProgram,
  stepProgram,
  stepTasks,
} from "@skein/cost-model";
import type { ExchangePlan, ProfiledJob } from "skein-train/profiling";
import { pricersOn } from "./groups-on.ts";
import { planOn } from "./plan-on.ts";

/** What is predicted of a job on some hardware. */
export interface Prediction {
  readonly program: StepProgram;
  readonly simulated: SimulatedStep;
}

/** A step that was prepared already, priced node by node. */
export const pricePrepared = (
  step: PreparedGraph,
  job: Pick<ProfiledJob, "groups">,
  hardware: HardwareFile,
): StepProgram => stepProgram(step, { device: hardware.device, collectives: pricersOn(job, hardware) });

/**
 * The job's graph as its backend prepares it, priced node by node. Cost: that of compiling the step, without kernels.
 *
 * @param plan as of `planOn`.
 */
export const pricedStep = (job: ProfiledJob, hardware: HardwareFile, plan?: ExchangePlan): StepProgram =>
  pricePrepared(job.step(plan), job, hardware);

/** Steps whose middle one is told where ranks scatter: fewer of many ranks, whose slowest scatters less. */
const scatteredSteps = (ranks: number): number => Math.min(61, 3 + Math.ceil(120 / ranks));

/**
 * Simulate all ranks of a job with a priced step. Where the hardware file knows how ranks scatter, times are those of
 * the middle one of several steps, and spans those of a step without scatter.
 */
export const simulateStep = (
  job: Pick<ProfiledJob, "facts" | "groups">,
  program: StepProgram,
  { device: { running }, links, topology }: HardwareFile,
  { spans = true }: { readonly spans?: boolean } = {},
): SimulatedStep => {
  const { ranks } = job.facts;
  const tasks = stepTasks(program, running);
  const all = Array.from({ length: ranks }, (_, rank) => rank);
  const world: SimulatedWorld = {
    programs: all.map(() => tasks),
    groups: Object.fromEntries(Object.entries(job.groups()).map(([axis, { groups }]) => [axis, groups])),
    hosts: hostsOfGroup(all, topology),
  };
  const options: SimulationOptions = {
    contention: links.contention,
    messageDelaySeconds: running?.messageDelaySeconds ?? 0,
    spans,
  };
  const { stepVariation = 0 } = running ?? {};
  if (stepVariation === 0 || ranks === 1) return simulate(world, options);
  const even = spans ? simulate(world, options) : undefined;
  const scattered = simulate(world, {
    ...options,
    spans: false,
    steps: scatteredSteps(ranks),
    jitter: { seed: 1, stepVariation },
  });
  return { ...(even ?? scattered), ...middleStep(scattered) };
};

/** Of several steps the one whose time is in the middle. The first is left out: ranks begin it together. */
const middleStep = ({
  endSeconds,
  exposedOfSteps,
}: SimulatedStep): Pick<SimulatedStep, "stepSeconds" | "exposedSeconds"> => {
  const steps = endSeconds.map((end, i) => ({
    stepSeconds: end - (endSeconds[i - 1] ?? 0),
    exposedSeconds: exposedOfSteps[i]!,
  }));
  const ordered = steps.slice(1).toSorted((a, b) => a.stepSeconds - b.stepSeconds);
  return ordered[Math.floor((ordered.length - 1) / 2)]!;
};

/**
 * Predict a step of a job on some hardware.
 *
 * @param plan of a planned exchange. Default: planned from prices, where a run plans from what it measures.
 */
export const predictStep = async (
  job: ProfiledJob,
  hardware: HardwareFile,
  plan?: ExchangePlan,
): Promise<Prediction> => {
  const program = pricedStep(job, hardware, plan ?? (await planOn(job, hardware)));
  return { program, simulated: simulateStep(job, program, hardware) };
};
