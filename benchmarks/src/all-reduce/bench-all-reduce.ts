import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { median, type Summary, summarize } from "@skein/measuring";
import type { Plot } from "../report/plot.ts";
import { makeRow, type Row } from "../report/row.ts";
import { complaintOf, type Failure } from "./complaint.ts";
import { type Conditions, readReport } from "./conditions.ts";
import { type Contestant, findContestants, peerVersions } from "./contestants.ts";
import { names } from "./names.ts";
import { noteOf } from "./note.ts";
import { pairings } from "./pairings.ts";
import { formatSizes, quickSizes, sizes } from "./problem.ts";

const run = promisify(execFile);
const rounds = 3;
/** Time after which an implementation that hangs is stopped; its row then reports the timeout. */
const longestMilliseconds = 300_000;

type Runnable = Extract<Contestant, { command: readonly string[] }>;

/** Runs an implementation with some arguments and returns its standard output. */
const measure = async ({ command, environment }: Runnable, words: readonly string[]): Promise<string> => {
  const [program, ...args] = command;
  const { stdout } = await run(program!, [...args, ...words], {
    maxBuffer: 2 ** 26,
    timeout: longestMilliseconds,
    env: { ...process.env, ...environment },
  });
  return stdout;
};

const label = (bytes: number): string => (bytes < 2 ** 20 ? `${bytes / 2 ** 10} KiB` : `${bytes / 2 ** 20} MiB`);

export interface AllReduceBench {
  readonly rows: readonly Row[];
  readonly plot: Plot;
  readonly versions: Readonly<Record<string, string>>;
}

/**
 * Times in-place f32 all-reduces between `ranks` ranks on this machine. Each implementation checks its results before
 * and after the timed all-reduces. Implementations take turns and each round begins with a different implementation, so
 * that a temporary load on the machine affects all implementations.
 *
 * @param folder Folder in which programs are built.
 * @param quick Whether to run one short round, which shows only that every implementation runs, not how fast.
 */
export const benchAllReduce = async (ranks: number, folder: string, quick: boolean): Promise<AllReduceBench> => {
  const contestants = await findContestants(ranks, folder);
  const wanted = quick ? quickSizes : sizes;
  const reasons = new Map(
    contestants.flatMap((contestant) => ("missing" in contestant ? [[contestant.name, contestant.missing]] : [])),
  );
  const samples = new Map<string, number[]>();
  const conditions = new Map<string, Conditions>();
  const key = (name: string, bytes: number): string => `${name} ${bytes}`;
  for (let round = 0; round < (quick ? 1 : rounds); round++) {
    for (let turn = 0; turn < contestants.length; turn++) {
      const contestant = contestants[(round + turn) % contestants.length]!;
      const { name } = contestant;
      if ("missing" in contestant || reasons.has(name)) continue;
      let printed: string;
      try {
        printed = await measure(contestant, formatSizes(wanted));
      } catch (error) {
        reasons.set(name, `failed: ${complaintOf(error as Failure, longestMilliseconds)}`);
        continue;
      }
      const report = readReport(printed);
      conditions.set(name, report.conditions);
      for (const { bytes, microseconds } of report.measurements)
        samples.set(key(name, bytes), [...(samples.get(key(name, bytes)) ?? []), ...microseconds]);
    }
  }
  // Measurements of an implementation that failed in a later round are ignored.
  const samplesOf = (name: string, bytes: number): readonly number[] | undefined =>
    reasons.has(name) ? undefined : samples.get(key(name, bytes));
  const summary = (name: string, bytes: number): Summary | undefined => {
    const found = samplesOf(name, bytes);
    return found && summarize(found);
  };
  const present = new Set(contestants.map(({ name }) => name));
  const rows = pairings
    .filter(({ ours, peer }) => present.has(ours) && present.has(peer))
    .flatMap((pairing) => {
      const { ours, peer, target } = pairing;
      const note = noteOf(pairing, conditions, reasons);
      return wanted.map(({ bytes }) =>
        makeRow({
          benchmark: `all-reduce ${label(bytes)}, ${ranks} ranks, ${ours}`,
          unit: "µs",
          better: "lower",
          peer,
          ours: summary(ours, bytes),
          theirs: summary(peer, bytes),
          target: target?.(bytes),
          note: note === "" ? undefined : note,
        }),
      );
    });
  const gloo = conditions.get(names.gloo)?.version;
  const series = contestants
    .filter(({ name }) => !reasons.has(name))
    .map(({ name }) => ({
      name,
      peer: !pairings.some(({ ours }) => ours === name),
      points: wanted.map(({ bytes }) => ({ bytes, microseconds: median(samplesOf(name, bytes)!) })),
    }));
  return {
    rows,
    plot: {
      name: `all-reduce-${ranks}`,
      title: `All-reduce of f32 between ${ranks} ranks on one machine, medians`,
      series,
    },
    versions: { ...peerVersions(), ...(gloo !== undefined && { Gloo: gloo }) },
  };
};
