import { type HardwareFile, hostsOfGroup } from "@skein/cost-model/hardware";
import { type StepProgram, stepTasks } from "@skein/cost-model/pricing";
import {
  simulate,
  type SimulatedStep,
  type SimulatedWorld,
  type SimulationOptions,
} from "@skein/cost-model/simulation";
import { medianBy } from "@skein/measuring";
import type { ProfiledJob } from "skein-train/profiling";

/**
 * Returns the number of steps to simulate if rank times vary. The median of these steps is used. Fewer steps are enough
 * for many ranks, because the time of the slowest rank varies less.
 */
const scatteredSteps = (ranks: number): number => Math.min(61, 3 + Math.ceil(120 / ranks));

/**
 * Simulates all ranks of a job with a step whose operations have predicted times. If the hardware file describes the
 * variation of rank times, the returned times are medians over several steps, but the spans are from a step without
 * variation.
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
  const withoutScatter = spans ? simulate(world, options) : undefined;
  const scattered = simulate(world, {
    ...options,
    spans: false,
    steps: scatteredSteps(ranks),
    jitter: { seed: 1, stepVariation },
  });
  return { ...(withoutScatter ?? scattered), ...medianOfSteps(scattered) };
};

/** Returns the step with the median time. The first step is excluded, because all ranks begin it at the same time. */
const medianOfSteps = ({
  endSeconds,
  exposedByStep,
}: SimulatedStep): Pick<SimulatedStep, "stepSeconds" | "exposedSeconds"> => {
  const steps = endSeconds.map((end, i) => ({
    stepSeconds: end - (endSeconds[i - 1] ?? 0),
    exposedSeconds: exposedByStep[i]!,
  }));
  return medianBy(steps.slice(1), ({ stepSeconds }) => stepSeconds)!;
};
