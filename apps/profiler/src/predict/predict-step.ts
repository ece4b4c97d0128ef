import type { GroupSituation } from "@skein/collectives";
import {
  collectivePricers,
  type HardwareFile,
  hostsOfGroup,
  simulate,
  type SimulatedStep,
  type SimulationOptions,
  type StepProgram,
  stepProgram,
  stepTasks,
} from "@skein/cost-model";
import type { ProfiledJob } from "skein-train/profiling";

/** What is predicted of a job on some hardware. */
export interface Prediction {
  readonly program: StepProgram;
  readonly simulated: SimulatedStep;
}

/** What the groups of a job are on some hardware, by mesh axis. */
export const groupsOn = (job: ProfiledJob, { links, topology }: HardwareFile): { readonly [axis: string]: GroupSituation } =>
  Object.fromEntries(
    Object.entries(job.groups()).map(([axis, { situation, groups }]) => {
      const hosts = hostsOfGroup(groups[0]!, topology); // groups of an axis are alike
      return [axis, { ...situation, link: links, hosts, sharesMemory: situation.sharesMemory && hosts.length === 1 }];
    }),
  );

/** The job's graph as its backend prepares it, priced node by node. Cost: that of compiling the step, without kernels. */
export const pricedStep = (job: ProfiledJob, hardware: HardwareFile): StepProgram =>
  stepProgram(job.step(), { device: hardware.device, collectives: collectivePricers(groupsOn(job, hardware)) });

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

/** Predict a step of a job on some hardware. */
export const predictStep = (job: ProfiledJob, hardware: HardwareFile): Prediction => {
  const program = pricedStep(job, hardware);
  return { program, simulated: simulateStep(job, program, hardware) };
};
