import { exitCodes, nodeFiles, replaceDurably, requireReplaceable, writeStdout } from "@skein/cli/node";
import { type AllToAllLevel, formatLinkFile, type LinkFile, type LinkFit } from "@skein/collectives";
import { makeProgress } from "@skein/run-files/node";
import { loadJob } from "../job-file/load-job.ts";
import { overridesOf, type RunOptions } from "../command-line/run-options.ts";
import { measureLinks, requireLinks } from "./measure-links.ts";

const microseconds = (seconds: number): string => `${(seconds * 1e6).toFixed(1)} µs`;
const rate = (secondsPerByte: number): string =>
  secondsPerByte < 1e-9 * 10
    ? `${(1e-9 / secondsPerByte).toFixed(2)} GB/s`
    : `${(1e-6 / secondsPerByte).toFixed(2)} MB/s`;

const levels: Readonly<Record<AllToAllLevel, string>> = {
  all: "ranks",
  within: "on each host",
  across: "on different hosts",
};

const lines = ({ within, across, pairs, allToAll = [], reduceSecondsPerByte }: LinkFile): string[] => {
  const line = (
    name: string,
    { secondsPerMessage, secondsPerByte, worstRelativeError }: LinkFit,
    each = "message",
  ): string =>
    `${name.padEnd(15)} ${microseconds(secondsPerMessage)} per ${each}, ${rate(secondsPerByte)} (fit error at most ${(worstRelativeError * 100).toFixed(0)} %)`;
  return [
    ...(within ? [line("within a host", within)] : []),
    ...(across ? [line("across hosts", across)] : []),
    ...(pairs.length > 1 ? pairs.map((pair) => line(`  ${pair.from} to ${pair.to}`, pair)) : []),
    ...allToAll.map((fit) => line(`${fit.ranks} ${levels[fit.level]}`, fit, "all-to-all")),
    `${"sums".padEnd(15)} ${rate(reduceSecondsPerByte)} per summand`,
  ];
};

/**
 * Runs `skein-train links`: measures the links of a job, and writes a link file, from which runs choose algorithms.
 *
 * @returns the exit code.
 */
export const linksCommand = async (file: string, options: RunOptions): Promise<number> => {
  const job = await loadJob(file, overridesOf(options));
  requireLinks(job);
  const output = options.output ?? "links.json";
  requireReplaceable(output, "--output");
  const progress = makeProgress({ stream: process.stderr, quiet: options.quiet === true });
  let links: LinkFile;
  try {
    links = await measureLinks(job, (text) => progress.note(text));
  } finally {
    progress.close();
  }
  replaceDurably(nodeFiles, output, formatLinkFile(links)); // runs may be reading the previous file
  const words =
    options.json === true
      ? [JSON.stringify(links)]
      : [...lines(links), `written to ${output}; use it with --set network.links=${output}`];
  for (const text of words) writeStdout(`${text}\n`);
  return exitCodes.ok;
};
