import { hostname } from "node:os";
import { fitLink, formatLinkFile, type LinkFile, type LinkFit, type LinkSample } from "@skein/collectives";
import { loadJob } from "../config.ts";
import { ConfigError, exitCodes } from "../errors.ts";
import type { Failures } from "../hosts/failures.ts";
import { nodeFiles, replaceDurably } from "../files.ts";
import { Interruption } from "../hosts/interruption.ts";
import type { Job } from "../job.ts";
import { localHost } from "../hosts/local-host.ts";
import type { MeasuredLinks, RankMessage } from "../messages.ts";
import { requireReplaceable } from "../places.ts";
import { makeProgress } from "../progress.ts";
import { overridesOf, type RunOptions } from "../run-options.ts";

/** Takes what each rank has measured: of every pair, the rank that begins. */
class LinkLedger {
  readonly parts: MeasuredLinks[] = [];

  take(rank: number, message: RankMessage, failures: Failures): void {
    if (message.type === "failed") failures.add(rank, message.error);
    else if (message.type === "links") this.parts.push(message.measured);
  }
}

const microseconds = (seconds: number): string => `${(seconds * 1e6).toFixed(1)} µs`;
const rate = (secondsPerByte: number): string =>
  secondsPerByte < 1e-9 * 10 ? `${(1e-9 / secondsPerByte).toFixed(2)} GB/s` : `${(1e-6 / secondsPerByte).toFixed(2)} MB/s`;

/** Lay lines through what was measured. */
export const linkFileOf = (job: Job, parts: readonly MeasuredLinks[]): LinkFile => {
  const { hosts } = parts[0]!;
  const hostOf = (rank: number): number => hosts.findIndex((host) => host.includes(rank));
  const pairs = parts.flatMap((part) => part.pairs);
  const fitOf = (within: boolean): LinkFit | undefined => {
    const samples: LinkSample[] = pairs.filter(({ from, to }) => (hostOf(from) === hostOf(to)) === within).flatMap((pair) => pair.samples);
    return samples.length === 0 ? undefined : fitLink(samples);
  };
  const [within, across] = [fitOf(true), fitOf(false)];
  return {
    format: "skein-links",
    version: 1,
    measuredAt: new Date().toISOString(),
    machine: hostname(),
    transport: job.transport,
    messageBytes: [...new Set(pairs.flatMap(({ samples }) => samples.map(({ bytes }) => bytes)))].toSorted((a, b) => a - b),
    hosts: hosts.map((host) => [...host]),
    ...(within && { within }),
    ...(across && { across }),
    pairs: pairs.map(({ from, to, samples }) => ({ from, to, ...fitLink(samples) })),
    reduceSecondsPerByte: Math.max(...parts.map((part) => part.reduceSecondsPerByte)),
  };
};

const lines = ({ within, across, pairs, reduceSecondsPerByte }: LinkFile): string[] => {
  const line = (name: string, { secondsPerMessage, secondsPerByte, worstRelativeError }: LinkFit): string =>
    `${name.padEnd(15)} ${microseconds(secondsPerMessage)} per message, ${rate(secondsPerByte)} (line off by at most ${(worstRelativeError * 100).toFixed(0)} %)`;
  return [
    ...(within ? [line("within a host", within)] : []),
    ...(across ? [line("across hosts", across)] : []),
    ...(pairs.length > 1 ? pairs.map((pair) => line(`  ${pair.from} to ${pair.to}`, pair)) : []),
    `${"sums".padEnd(15)} ${rate(reduceSecondsPerByte)} of one summand`,
  ];
};

/** `skein-train links`: measure the links of a job, and write the file by which its algorithms are chosen. @returns the exit code. */
export const linksCommand = async (file: string, options: RunOptions): Promise<number> => {
  const job = await loadJob(file, overridesOf(options));
  if (job.transport === "threads")
    throw new ConfigError(["transport: threads has no links, its ranks read each other's memory; add --transport tcp, tls or mpi"]);
  if (job.ranks < 2) throw new ConfigError([`ranks: ${job.ranks} has no links; use two ranks or more, --ranks 2`]);
  const output = options.output ?? "links.json";
  requireReplaceable(output, "--output");
  const progress = makeProgress({ stream: process.stderr, quiet: options.quiet === true });
  const ledger = new LinkLedger();
  try {
    await localHost(job).run({
      assignment: { task: "measure-links", job, output: "" },
      ledger,
      interruption: new Interruption(),
      note: (text) => progress.note(text),
    });
  } finally {
    progress.close();
  }
  const links = linkFileOf(job, ledger.parts);
  replaceDurably(nodeFiles, output, formatLinkFile(links)); // runs may be reading the one before
  const words =
    options.json === true ? [JSON.stringify(links)] : [...lines(links), `written to ${output}; use it with --set network.links=${output}`];
  for (const text of words) process.stdout.write(`${text}\n`);
  return exitCodes.ok;
};
