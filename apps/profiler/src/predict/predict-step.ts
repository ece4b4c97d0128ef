import {
  collectivePricer,
  type HardwareFile,
  simulate,
  type SimulatedStep,
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

/**
 * Predict a step of a job on some hardware: the job's graph as its backend prepares it, priced node by node, and all ranks simulated.
 *
 * Cost: that of compiling the step, without kernels.
 */
export const predictStep = (job: ProfiledJob, { device, links, topology }: HardwareFile): Prediction => {
  const { ranks, transport } = job.facts;
  const axes = Object.entries(job.groups());
  const collectives = Object.fromEntries(
    axes.map(([axis, { situation, groups }]) => {
      // Groups of an axis are alike.
      const hosts = hostsOf(groups[0]!, topology.ranksPerHost);
      return [axis, collectivePricer({ ...situation, link: links, hosts, sharesMemory: transport === "threads" && hosts.length === 1 })];
    }),
  );
  const program = stepProgram(job.step(), { device, collectives });
  const tasks = stepTasks(program);
  const simulated = simulate(
    {
      programs: Array.from({ length: ranks }, () => tasks),
      groups: Object.fromEntries(axes.map(([axis, { groups }]) => [axis, groups])),
      hosts: hostsOf(
        Array.from({ length: ranks }, (_, rank) => rank),
        topology.ranksPerHost,
      ),
    },
    { contention: links.contention },
  );
  return { program, simulated };
};
