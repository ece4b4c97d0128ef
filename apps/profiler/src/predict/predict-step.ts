import type { GroupSituation } from "@skein/collectives";
import {
  collectivePricer,
  type HardwareFile,
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

/** The members of a group by host, as the hardware has them: rank r on host ⌊r / ranksPerHost⌋. @returns their places in the group. */
const hostsOf = (group: readonly number[], ranksPerHost: number): number[][] => [
  ...Map.groupBy(group.keys(), (place) => Math.floor(group[place]! / ranksPerHost)).values(),
];

/** What the groups of a job are on some hardware, by mesh axis. */
export const hardwareFor = (
  job: ProfiledJob,
  { links, topology }: HardwareFile,
): { readonly situations: { readonly [axis: string]: GroupSituation } } => ({
  situations: Object.fromEntries(
    Object.entries(job.groups()).map(([axis, { situation, groups }]) => {
      const hosts = hostsOf(groups[0]!, topology.ranksPerHost); // groups of an axis are alike
      return [axis, { ...situation, link: links, hosts, sharesMemory: job.facts.transport === "threads" && hosts.length === 1 }];
    }),
  ),
});

/** The job's graph as its backend prepares it, priced node by node. Cost: that of compiling the step, without kernels. */
export const pricedStep = (job: ProfiledJob, hardware: HardwareFile): StepProgram => {
  const { situations } = hardwareFor(job, hardware);
  const collectives = Object.fromEntries(Object.entries(situations).map(([axis, situation]) => [axis, collectivePricer(situation)]));
  return stepProgram(job.step(), { device: hardware.device, collectives });
};

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
      hosts: hostsOf(all, topology.ranksPerHost),
    },
    { contention: links.contention, ...options },
  );
};

/** Predict a step of a job on some hardware. */
export const predictStep = (job: ProfiledJob, hardware: HardwareFile): Prediction => {
  const program = pricedStep(job, hardware);
  return { program, simulated: simulateStep(job, program, hardware) };
};
