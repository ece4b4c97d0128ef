import { writeFileSync } from "node:fs";
import { linkCosts } from "@skein/collectives";
import {
  type ClusterLinks,
  type Device,
  type HardwareFile,
  type KernelSample,
  overlapsOf,
  type RunningCosts,
} from "@skein/cost-model";
import { formatHardwareFile } from "@skein/cost-model/files";
import { ArgumentError, SkeinError } from "@skein/tensor-core";
import { type JobOptions, openJob, type ProfiledJob, writeStderr, writeStdout } from "skein-train/profiling";
import { calibrateDevice } from "../calibrate/calibrate-device.ts";
import { calibrationLines } from "../predict/calibration-lines.ts";
import { measureKernelGrid } from "../calibrate/kernel-grid.ts";
import { fitRunningCosts } from "../calibrate/running-costs.ts";
import { linksOfThreads, noContention, threadLinks } from "../calibrate/thread-links.ts";
import { exitCodes } from "../errors.ts";
import { machineInWords } from "../machine.ts";
import { milliseconds } from "../milliseconds.ts";
import { asTyped } from "../own-command.ts";
import { eachByItself } from "../predict/candidates.ts";
import { pricePrepared } from "../predict/predict-step.ts";
import { type MeasuredJob, measureJob } from "../profile/measure-job.ts";
import { countOf } from "./count-of.ts";

export interface CalibrateCommandOptions extends Pick<JobOptions, "ranks" | "transport" | "set"> {
  readonly steps: string;
  readonly warmUp: string;
  readonly rounds: string;
  readonly output: string;
}

/** A job that is measured, and how it is named. */
interface Way {
  readonly job: ProfiledJob;
  readonly name: string;
  readonly rounds: MeasuredJob[];
}

/** Each gradient by itself, after and beside computation: how messages and computation disturb each other. */
const waysToExchange = async (first: ProfiledJob): Promise<Way[]> => {
  const ways: Way[] = [];
  for (const [overlap, when] of [
    ["none", "after the backward pass"],
    ["wait-free", "beside the backward pass"],
    ["dear", "in halves around the end of a step"],
  ] as const)
    try {
      ways.push({
        job: await first.with(eachByItself(overlap)),
        name: `${first.facts.name}, each gradient by itself ${when}`,
        rounds: [],
      });
    } catch (error) {
      // Not every job can be trained so.
      if (!(error instanceof SkeinError) || error.kind !== "user") throw error;
    }
  return ways;
};

/** What each of these is beside kernels and messages. */
const runningLines = (running: RunningCosts, ranks: number): string[] => {
  const { secondsPerStep, secondsPerCollective, collectiveLatencySeconds, secondsPerByteBeside } = running;
  const { stepVariation, messageDelaySeconds, overlapSlowdown = 0 } = running;
  const ofStep = `steps        ${milliseconds(secondsPerStep)} outside of kernels`;
  if (ranks === 1) return [ofStep];
  return [
    `${ofStep}; ranks differ by ${(100 * stepVariation).toFixed(0)} % within one`,
    `collectives  ${milliseconds(secondsPerCollective)} to hand one over, ${milliseconds(collectiveLatencySeconds)} beside its messages`,
    `overlap      ${(1e9 * secondsPerByteBeside).toPrecision(3)} ns/B of a rank that computes, kernels ${(100 * overlapSlowdown).toFixed(0)} % slower, messages ${milliseconds(messageDelaySeconds)} later`,
  ];
};

/**
 * Kernels as they are when nothing travels beside them: how far messages slow them is a cost of its own. What only runs
 * beside messages counts as it is.
 */
const undisturbedSamples = (runs: readonly MeasuredJob[], device: Device): KernelSample[] => {
  const byOverlap = Map.groupBy(runs, (run) => overlapsOf(run.programOn(device)).length > 0);
  const [beside, alone] = [true, false].map((isBeside) =>
    (byOverlap.get(isBeside) ?? []).flatMap((run) => run.samples()),
  ) as [KernelSample[], KernelSample[]];
  const known = new Set(alone.map(({ operator }) => operator));
  return [...alone, ...beside.filter(({ operator }) => !known.has(operator))];
};

/** `skein-profile calibrate`: measure this machine by its kernels and by jobs, and write what predictions need. */
export const calibrateCommand = async (
  files: readonly string[],
  { steps, warmUp, rounds: asked, output, ...jobOptions }: CalibrateCommandOptions,
): Promise<number> => {
  const counted = countOf("steps", steps, 2);
  const warmUpSteps = countOf("warm-up", warmUp, 0);
  const rounds = countOf("rounds", asked, 1);
  const say = (line: string): void => writeStderr(`${line}\n`);
  const jobs = await Promise.all(files.map((file) => openJob(file, jobOptions)));
  const [first] = jobs;
  if (first === undefined)
    throw new ArgumentError(
      "no job was named; name one or more whose operators and ranks are like those that you will predict",
    );
  const { ranks, transport, backend } = first.facts;
  const other = jobs.find(
    ({ facts }) => facts.ranks !== ranks || facts.transport !== transport || facts.backend !== backend,
  );
  if (other !== undefined)
    throw new ArgumentError(
      `${first.facts.name} has ${ranks} ranks over ${transport} on ${backend}, ${other.facts.name} has ${other.facts.ranks} over ${other.facts.transport} on ${other.facts.backend}; one file describes one machine: set --ranks and --transport for all`,
    );
  say("measuring single kernels");
  const rates = await first.rates();
  const source = `measured by skein-profile calibrate on ${new Date().toISOString().slice(0, 10)}: ${machineInWords()}`;
  const described = {
    name: `${ranks === 1 ? "one rank" : `each of ${ranks} ranks`} of ${machineInWords()}`,
    kind: backend === "cpu" ? "cpu" : "gpu",
    source,
  } as const;
  const ways = [
    ...jobs.map((job): Way => ({ job, name: job.facts.name, rounds: [] })),
    ...(ranks > 1 ? await waysToExchange(first) : []),
  ];
  const grid = backend === "cpu" ? await measureKernelGrid() : [];
  for (let round = 1; round <= rounds; round++)
    for (const way of ways) {
      say(`measuring ${way.name}: ${warmUpSteps + counted} steps, round ${round} of ${rounds}`);
      way.rounds.push(await measureJob(way.job, { steps: counted, warmUpSteps }));
    }
  const runs = ways.flatMap((way) => way.rounds);
  const samples = [...grid, ...undisturbedSamples(runs, calibrateDevice(rates, grid, described))];
  const linksOf = async (): Promise<ClusterLinks> => {
    if (ranks === 1 || transport === "threads") {
      const within =
        ranks === 1
          ? { secondsPerMessage: 0, secondsPerByte: 0 }
          : threadLinks(
              runs.flatMap((run) => run.steps),
              ranks,
            );
      return linksOfThreads(within, source);
    }
    say(`measuring links over ${transport}`);
    return { ...linkCosts(await first.links()), contention: noContention, source };
  };
  const kernels: HardwareFile = {
    format: "skein-hardware",
    version: 1,
    name: `this machine, ${ranks} ${ranks === 1 ? "rank" : "ranks"}`,
    description: `${machineInWords()}; ${ranks} ranks over ${transport}`,
    device: calibrateDevice(rates, samples, described),
    topology: { ranks, ranksPerHost: ranks },
    links: await linksOf(),
  };
  const { running, fits } = fitRunningCosts(
    ways.map(({ job, rounds: own }) => ({
      job,
      rounds: own.map((run) => run.steps),
      program: pricePrepared(own[0]!.step, job, kernels),
    })),
    kernels,
  );
  const device = { ...kernels.device, running };
  const calibrated = fits.map((fit, i) => ({ name: ways[i]!.name, ...fit }));
  const calibration = { links: kernels.links.source, runs: calibrated };
  writeFileSync(output, formatHardwareFile({ ...kernels, device, calibration }));
  writeStdout(
    [
      `products     ${(device.flopsPerSecond.f32 / 1e9).toPrecision(3)} GFLOP/s`,
      `memory       ${(device.memoryBytesPerSecond / 1e9).toPrecision(3)} GB/s`,
      `kernel start ${(device.kernelStartSeconds * 1e6).toPrecision(2)} µs`,
      `operators    ${device.efficiencies.length} sizes of ${new Set(device.efficiencies.map(({ operator }) => operator)).size}, from ${samples.length} kernels`,
      ...runningLines(running, ranks),
      ...calibrationLines(calibrated),
      asTyped(`written to ${output}; use it with skein-profile predict <job> --hardware ${output}`),
      "",
    ].join("\n"),
  );
  return exitCodes.ok;
};
