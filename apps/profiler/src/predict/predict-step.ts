import {
  type HardwareFile,
  hostsOfGroup,
  simulate,
  type SimulatedStep,
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

/** The job's graph as its backend prepares it, priced node by node. Cost: that of compiling the step, without kernels. @param plan as of `planOn`. */
export const pricedStep = (job: ProfiledJob, hardware: HardwareFile, plan?: ExchangePlan): StepProgram =>
  stepProgram(job.step(plan), { device: hardware.device, collectives: pricersOn(job, hardware) });

/** Simulate all ranks of a job with a priced step. */
export const simulateStep = (
  job: ProfiledJob,
  program: StepProgram,
  { links, topology }: HardwareFile,
  options: SimulationOptions = {},
): SimulatedStep => {
  const { ranks } = job.facts;
  const tasks = stepTasks(program);
  const all = Array.from({ length: ranks }, (_, rank) => rank);
  return simulate(
    {
      programs: all.map(() => tasks),
      groups: Object.fromEntries(Object.entries(job.groups()).map(([axis, { groups }]) => [axis, groups])),
      hosts: hostsOfGroup(all, topology),
    },
    { contention: links.contention, ...options },
  );
};

/**
 * Predict a step of a job on some hardware.
 *
 * @param plan of a planned exchange. Default: planned from prices, where a run plans from what it measures.
 */
export const predictStep = async (job: ProfiledJob, hardware: HardwareFile, plan?: ExchangePlan): Promise<Prediction> => {
  const program = pricedStep(job, hardware, plan ?? (await planOn(job, hardware)));
  return { program, simulated: simulateStep(job, program, hardware) };
};
