import { median } from "@skein/measuring";
import { printable, secondsOf, type WorldStep } from "@skein/report";
import { ArgumentError, type RankSpans } from "@skein/tensor-core";
import {
  type ExchangePlan,
  type JobFacts,
  type JobOptions,
  openJob,
  type ProfiledJob,
  writeStderr,
} from "skein-train/profiling";
import { exitCodes } from "../errors.ts";
import { claimFolder, dropUnused, writeReport } from "../outputs.ts";
import { hardwareOf } from "../predict/hardware-of.ts";
import { predictStep } from "../predict/predict-step.ts";
import { buildReport, type PricedStep, type ProfileInput } from "../profile/build-report.ts";
import { deviceHere } from "../profile/device-here.ts";
import { programOn } from "../profile/measure-job.ts";
import { spanOverheadSeconds } from "../profile/span-overhead.ts";
import { readTrace } from "../trace/read-trace.ts";
import { cutLine, traceSteps } from "../trace/trace-steps.ts";
import { countOf } from "./count-of.ts";

export interface ReportCommandOptions extends Pick<JobOptions, "ranks" | "transport" | "set"> {
  readonly job?: string;
  readonly hardware?: string;
  readonly warmUp: string;
  readonly output?: string;
  readonly json?: boolean;
}

/**
 * Checks that no option that describes the job of the trace is given without --job.
 *
 * @throws ArgumentError if there is such an option without --job.
 */
const requireJob = ({ job, ranks, transport, set = [], hardware }: ReportCommandOptions): void => {
  const given = Object.entries({ ranks, transport, hardware, set: set[0] }).find(([, value]) => value !== undefined);
  if (job === undefined && given !== undefined)
    throw new ArgumentError(
      `--${given[0]} ${given[1]} describes the job of the trace, and no job is given; add --job <job.yaml>, or leave --${given[0]} out`,
    );
};

/** Returns the names of the hosts in a trace. */
const machineOf = (ranks: readonly RankSpans[]): string => {
  const hosts = new Set(ranks.flatMap(({ process }) => process?.split(":")[0] ?? []));
  return hosts.size === 0 ? "an unnamed machine" : `from a trace of ${[...hosts].join(", ")}`;
};

/**
 * Maximum fraction of the computing time in operators that the job does not contain. Above this fraction, the trace is
 * rejected as the trace of a different job.
 */
const maxUnknown = 0.05;

/**
 * Checks that a trace can belong to a job.
 *
 * @throws ArgumentError if the number of ranks differs, or if operators that the job does not contain take too much
 * time.
 * @returns operators of the trace that are not in the job's step.
 */
const unknownOperators = (
  steps: readonly WorldStep[],
  numRanks: number,
  { facts }: ProfiledJob,
  { program }: PricedStep,
  path: string,
): string[] => {
  if (facts.ranks !== numRanks)
    throw new ArgumentError(
      `${path} has ${numRanks} ranks, and --job ${facts.name} has ${facts.ranks}; give the job of the trace, or add --ranks ${numRanks}`,
    );
  const known = new Set(program.map(({ name }) => name));
  const computed = steps.flat().flatMap(({ spans }) => spans.filter(({ track }) => track === "compute"));
  const spansByName = Map.groupBy(computed, ({ name }) => name);
  const unknown = [...spansByName.keys()].filter((name) => !known.has(name));
  // Medians are used, because one long span, during which the thread had no core, may exceed the sum of all other
  // spans.
  const seconds = (names: Iterable<string>): number =>
    [...names]
      .map((name) => spansByName.get(name)!)
      .reduce((sum, spans) => sum + spans.length * median(spans.map(secondsOf)), 0);
  const share = seconds(unknown) / seconds(spansByName.keys());
  if (share > maxUnknown)
    throw new ArgumentError(
      `${path} spends ${(100 * share).toFixed(0)} % of its computing on operators that --job ${facts.name} does not have, such as ${printable(unknown.slice(0, 3).join(", "))}; give the job of the trace`,
    );
  return unknown;
};

const priced = async (
  job: ProfiledJob,
  hardware: string | undefined,
  plan: ExchangePlan | undefined,
): Promise<Pick<ProfileInput, "predicted"> & { readonly priced: PricedStep }> => {
  const { stateBytes } = job.facts;
  if (hardware === undefined) {
    const [step, device] = [job.step(plan), await deviceHere(job)];
    return { priced: { step, stateBytes, program: programOn(job, step, device), device } };
  }
  const described = hardwareOf(hardware);
  const { program, simulated } = await predictStep(job, described, plan);
  return { priced: { step: job.step(plan), stateBytes, program, device: described.device }, predicted: simulated };
};

/**
 * Determines from a trace which clock timed the kernels. A device without timestamp queries records a single span per
 * step.
 */
const clockOf = (backend: string, steps: readonly WorldStep[]): JobFacts["kernelClock"] => {
  if (backend === "cpu") return "host";
  const kernels = steps.flat().flatMap(({ spans }) => spans.filter(({ track }) => track === "compute"));
  return kernels.length > steps.flat().length ? "device" : "none";
};

/** Implements `skein-profile report`: creates a report from an existing trace. */
export const reportCommand = async (path: string, options: ReportCommandOptions): Promise<number> => {
  const { job: jobFile, hardware, warmUp, output, json = false, ...jobOptions } = options;
  const warmUpSteps = countOf("warm-up", warmUp, 0);
  requireJob(options);
  const trace = readTrace(path);
  const { facts, ranks } = trace;
  const warn = (line: string): void => writeStderr(`${line}\n`);
  const all = traceSteps(trace, path);
  const steps = all.slice(warmUpSteps);
  const cut = cutLine(trace, all, path);
  if (cut !== undefined) warn(cut);
  const job = jobFile === undefined ? undefined : await openJob(jobFile, jobOptions);
  const known = job && (await priced(job, hardware, facts.plan));
  const unknown = job && known ? unknownOperators(steps, ranks.length, job, known.priced, path) : [];
  if (unknown.length > 0)
    warn(
      `${unknown.length} operators of the trace are not in the step of ${jobFile}, so they have no flops, bytes or predictions: ${printable(unknown.slice(0, 3).join(", "))}`,
    );
  const report = buildReport({
    facts: {
      name: facts.job,
      backend: facts.backend,
      ranks: ranks.length,
      samplesPerStep: facts.samplesPerStep,
      kernelClock: job?.facts.kernelClock ?? clockOf(facts.backend, steps),
    },
    // For a trace without a job, the cost of recording a span is unknown, because the trace may be from another
    // machine.
    measured: { steps, overheadSeconds: job === undefined ? 0 : spanOverheadSeconds() },
    warmUpSteps,
    madeAt: new Date(facts.madeAt),
    machine: machineOf(ranks),
    ...known,
  });
  const folder = claimFolder(facts.job, output);
  try {
    writeReport(folder, report, { ranks, plan: facts.plan }, { json, columns: process.stdout.columns });
  } catch (error) {
    dropUnused(folder);
    throw error;
  }
  return exitCodes.ok;
};
