import { hostname } from "node:os";
import { ConfigError } from "@skein/cli/node";
import { type AllToAllFit, fitLink, type LinkFile, type LinkFit, type LinkSample } from "@skein/collectives";
import type { Job } from "@skein/job/node";
import type { Failures } from "../controller/failures.ts";
import { Interruption } from "../processes/interruption.ts";
import { localRunner } from "../controller/local-runner.ts";
import type { MeasuredLinks, RankMessage } from "../rank/messages.ts";

/** Collects the link measurements of all ranks. The link between two ranks is measured by the lower rank. */
class LinkRecord {
  readonly parts: MeasuredLinks[] = [];

  take(rank: number, message: RankMessage, failures: Failures): void {
    if (message.type === "failed") failures.add(rank, message.error);
    else if (message.type === "links") this.parts.push(message.measured);
  }
}

/**
 * Fits a linear time model to the all-to-alls of each level (all ranks, within hosts, across hosts). Each measured time
 * is the maximum over all ranks, because an all-to-all ends when the slowest rank has its data.
 */
const allToAllFits = (parts: readonly MeasuredLinks[]): AllToAllFit[] =>
  parts[0]!.allToAll.map(({ level, ranks, samples }, at) => ({
    level,
    ranks,
    ...fitLink(
      samples.map(({ bytes }, i) => ({
        bytes,
        seconds: Math.max(...parts.map(({ allToAll }) => allToAll[at]!.samples[i]!.seconds)),
      })),
    ),
  }));

/** Fits linear models to the measurements, and returns the models as a link file. */
export const linkFileOf = (job: Job, parts: readonly MeasuredLinks[]): LinkFile => {
  const { hosts } = parts[0]!;
  const hostOf = (rank: number): number => hosts.findIndex((host) => host.includes(rank));
  const pairs = parts.flatMap((part) => part.pairs);
  const fitOf = (within: boolean): LinkFit | undefined => {
    const samples: LinkSample[] = pairs
      .filter(({ from, to }) => (hostOf(from) === hostOf(to)) === within)
      .flatMap((pair) => pair.samples);
    return samples.length === 0 ? undefined : fitLink(samples);
  };
  const [within, across] = [fitOf(true), fitOf(false)];
  return {
    format: "skein-links",
    version: 1,
    measuredAt: new Date().toISOString(),
    machine: hostname(),
    transport: job.transport,
    messageBytes: [...new Set(pairs.flatMap(({ samples }) => samples.map(({ bytes }) => bytes)))].toSorted(
      (a, b) => a - b,
    ),
    hosts: hosts.map((host) => [...host]),
    ...(within && { within }),
    ...(across && { across }),
    allToAll: allToAllFits(parts),
    pairs: pairs.map(({ from, to, samples }) => ({ from, to, ...fitLink(samples) })),
    reduceSecondsPerByte: Math.max(...parts.map((part) => part.reduceSecondsPerByte)),
  };
};

/** Requires that a job has links. @throws ConfigError if the job has `transport: threads` or a single rank. */
export const requireLinks = (job: Job): void => {
  if (job.transport === "threads")
    throw new ConfigError([
      "transport: threads has no links, because ranks read each other's memory; add --transport tcp, tls or mpi",
    ]);
  if (job.ranks < 2)
    throw new ConfigError([`ranks: ${job.ranks} rank has no links; use at least two ranks, --ranks 2`]);
};

/**
 * Measures the links between the ranks of a job.
 * @throws ConfigError if the job has no links, or the error that ended a rank.
 */
export const measureLinks = async (job: Job, note: (line: string) => void): Promise<LinkFile> => {
  requireLinks(job);
  const record = new LinkRecord();
  await localRunner(job).run({
    assignment: { task: "measure-links", job, output: "", totalSteps: 0, stepOffset: 0 },
    record,
    interruption: new Interruption(),
    note,
  });
  return linkFileOf(job, record.parts);
};
