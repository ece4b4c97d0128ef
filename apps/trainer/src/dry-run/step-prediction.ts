import {
  collectivePricers,
  computeSeconds,
  isStart,
  type StepProgram,
  stepProgram,
  stepTasks,
} from "@skein/cost-model/pricing";
import { simulate } from "@skein/cost-model/simulation";
import type { LinkFile } from "@skein/collectives";
import type { Job } from "@skein/job/node";
import { axisGroupsOf, type AxisGroups } from "../members/axis-groups.ts";
import { deviceOfRates } from "../backend/backend-rates.ts";
import type { JobRates } from "../backend/job-rates.ts";
import { measuredLinksOf } from "../members/network-world.ts";
import type { PreparedStep } from "../preparation/prepared-step.ts";

/** Predicted lower bound on the step time. */
export interface StepPrediction {
  /** Seconds of all kernels of a rank, as if no other rank used the machine. */
  readonly computeSeconds: number;
  /** Seconds of the step including messages that overlap with computation. Absent: links were not measured. */
  readonly stepSeconds?: number;
  /** Part of `stepSeconds` that ranks spend waiting for messages. */
  readonly exposedSeconds?: number;
  /** Bytes that the busiest rank sends in all collectives of a step. */
  readonly sentBytes: number;
  /** Reason, shown to the user, why the prediction does not include messages. Absent: messages are included. */
  readonly unknown?: string;
}

type Groups = { readonly [axis: string]: AxisGroups };

/**
 * Whether the ranks in a link file are exactly the ranks 0 to `ranks` − 1, so that its measurements apply to a job with
 * `ranks` ranks.
 */
const matchesRanks = ({ hosts }: LinkFile, ranks: number): boolean =>
  new Set(hosts.flat()).size === ranks && hosts.flat().every((rank) => rank < ranks);

const unknownLinks = (job: Job, links: LinkFile | undefined): string | undefined => {
  if (job.ranks === 1) return undefined;
  if (links !== undefined && matchesRanks(links, job.ranks)) return undefined;
  if (links !== undefined)
    return `messages are not included: ${job.network.links!} was measured with ${links.hosts.flat().length} ranks, the job has ${job.ranks}; measure with skein-train links`;
  return job.transport === "threads"
    ? "messages are not included: ranks are threads, whose exchange through memory was not measured"
    : `messages are not included: no link was measured; measure with skein-train links, and give its file in network.links`;
};

/**
 * Returns the indices of a group's ranks within the group, as one list of indices per host. Hosts without ranks of the
 * group are omitted.
 */
const indicesByHost = (group: readonly number[], hosts: readonly (readonly number[])[]): number[][] =>
  hosts
    .map((ranks) => group.flatMap((rank, index) => (ranks.includes(rank) ? [index] : [])))
    .filter((indices) => indices.length > 0);

/**
 * Adds the hosts in a link file to the groups of each mesh axis. All groups of an axis get the host layout of the first
 * group.
 */
const groupsOnHosts = (groups: Groups, links: LinkFile): Groups =>
  Object.fromEntries(
    Object.entries(groups).map(([axis, { situation, groups: all }]) => {
      const hosts = indicesByHost(all[0]!, links.hosts);
      return [
        axis,
        {
          situation: { ...situation, hosts, sharesMemory: situation.sharesMemory && hosts.length === 1 },
          groups: all,
        },
      ];
    }),
  );

/** Simulates the step on all ranks with the cost model's simulator. */
const simulated = (
  program: StepProgram,
  { ranks }: Job,
  groups: Groups,
  links: LinkFile | undefined,
): Pick<StepPrediction, "stepSeconds" | "exposedSeconds"> => {
  const tasks = stepTasks(program);
  const { stepSeconds, exposedSeconds } = simulate(
    {
      programs: Array.from({ length: ranks }, () => tasks),
      groups: Object.fromEntries(Object.entries(groups).map(([axis, { groups: all }]) => [axis, all])),
      ...(links !== undefined && { hosts: links.hosts }),
    },
    { spans: false },
  );
  return { stepSeconds, exposedSeconds: Math.max(...exposedSeconds) };
};

/**
 * Predicts the time of a planned step with the cost model of `skein-profile predict`. The prediction uses the measured
 * rates of the backend for kernels, and the measured links of the job for collectives.
 *
 * @throws ConfigError or LinkFileError if a link file cannot be read.
 */
export const predictStep = (job: Job, step: PreparedStep, { rates, device }: JobRates): StepPrediction => {
  const links = job.ranks === 1 ? undefined : measuredLinksOf(job);
  const unknown = unknownLinks(job, links);
  const known = unknown === undefined ? links : undefined;
  const groups = known === undefined ? axisGroupsOf(job) : groupsOnHosts(axisGroupsOf(job), known);
  const program = stepProgram(step, {
    device: deviceOfRates(rates, {
      name: device?.adapter ?? "this machine",
      kind: device === undefined ? "cpu" : "gpu",
      memoryBytes: 0,
    }),
    collectives: collectivePricers(
      Object.fromEntries(Object.entries(groups).map(([axis, { situation }]) => [axis, situation])),
    ),
  });
  return {
    computeSeconds: computeSeconds(program),
    sentBytes: program.filter(isStart).reduce((sum, { price }) => sum + price.sentBytes, 0),
    ...(unknown === undefined ? simulated(program, job, groups, known) : { unknown }),
  };
};
