import {
  collectivePricers,
  computeSeconds,
  isStart,
  simulate,
  type StepProgram,
  stepProgram,
  stepTasks,
} from "@skein/cost-model";
import type { LinkFile } from "@skein/collectives";
import { axisGroupsOf, type AxisGroups } from "../members/axis-groups.ts";
import { deviceOfRates } from "../backend/backend-rates.ts";
import type { Job } from "../job/job.ts";
import type { JobRates } from "../backend/job-rates.ts";
import { measuredLinksOf } from "../members/network-world.ts";
import type { PreparedStep } from "../preparation/prepared-step.ts";

/** What a step takes at least, and what that rests on. */
export interface StepPrediction {
  /** Kernels alone, of one rank that has the machine to itself as the measurement had. */
  readonly computeSeconds: number;
  /** With messages, each beside what is computed meanwhile; absent where nobody has measured the links. */
  readonly stepSeconds?: number;
  /** Of that, waiting for messages. */
  readonly exposedSeconds?: number;
  /** Bytes that the busiest rank sends, of all collectives of a step. */
  readonly sentBytes: number;
  /** What is not known of the messages, for people. */
  readonly unknown?: string;
}

type Groups = { readonly [axis: string]: AxisGroups };

/** Whether a link file speaks of so many ranks. */
const isOf = ({ hosts }: LinkFile, ranks: number): boolean =>
  new Set(hosts.flat()).size === ranks && hosts.flat().every((rank) => rank < ranks);

const unknownLinks = (job: Job, links: LinkFile | undefined): string | undefined => {
  if (job.ranks === 1) return undefined;
  if (links !== undefined && isOf(links, job.ranks)) return undefined;
  if (links !== undefined)
    return `messages are not in it: ${job.network.links!} was measured with ${links.hosts.flat().length} ranks, the job has ${job.ranks}; measure with skein-train links`;
  return job.transport === "threads"
    ? "messages are not in it: ranks are threads, whose exchange through memory nobody has measured"
    : `messages are not in it: no link was measured; measure with skein-train links, and name its file by network.links`;
};

/** Places of a group's members, by the host that they are on. */
const placesByHost = (group: readonly number[], hosts: readonly (readonly number[])[]): number[][] =>
  hosts
    .map((ranks) => group.flatMap((rank, place) => (ranks.includes(rank) ? [place] : [])))
    .filter((places) => places.length > 0);

/** The groups as they lie on the hosts of a link file. Those of an axis are alike. */
const onHosts = (groups: Groups, links: LinkFile): Groups =>
  Object.fromEntries(
    Object.entries(groups).map(([axis, { situation, groups: all }]) => {
      const hosts = placesByHost(all[0]!, links.hosts);
      return [
        axis,
        {
          situation: { ...situation, hosts, sharesMemory: situation.sharesMemory && hosts.length === 1 },
          groups: all,
        },
      ];
    }),
  );

/** All ranks by the simulator that prices runs on described hardware. */
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
 * Predict a planned step: kernels by measured rates, collectives by measured links where the job names them, all by the
 * cost model that `skein-profile predict` goes by.
 *
 * @throws ConfigError, LinkFileError for a link file that cannot be read.
 */
export const predictStep = (job: Job, step: PreparedStep, { rates, device }: JobRates): StepPrediction => {
  const links = job.ranks === 1 ? undefined : measuredLinksOf(job);
  const unknown = unknownLinks(job, links);
  const known = unknown === undefined ? links : undefined;
  const groups = known === undefined ? axisGroupsOf(job) : onHosts(axisGroupsOf(job), known);
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
