import { writeFileSync } from "node:fs";
import { linkCosts } from "@skein/collectives";
import type { ClusterLinks, ComputeDevice, HardwareFile, RunningCosts } from "@skein/cost-model/hardware";
import type { KernelSample } from "@skein/cost-model/calibration";
import { overlapsOf } from "@skein/cost-model/pricing";
import { formatHardwareFile } from "@skein/cost-model/files";
import { ArgumentError, SkeinError } from "@skein/tensor-core";
import { millisecondsText } from "@skein/report";
import { type JobOptions, openJob, type ProfiledJob, writeStderr, writeStdout } from "skein-train/profiling";
import { calibrateDevice } from "../calibrate/calibrate-device.ts";
import { calibrationLines } from "../predict/calibration-lines.ts";
import { measureKernelGrid } from "../calibrate/kernel-grid.ts";
import { fitRunningCosts } from "../calibrate/running-costs.ts";
import { linksOfThreads, noContention, threadLinks } from "../calibrate/thread-links.ts";
import { exitCodes } from "../errors.ts";
import { describeMachine } from "../machine.ts";
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

/** A job to measure, with its name in the output. */
interface Variant {
  readonly job: ProfiledJob;
  readonly name: string;
  readonly rounds: MeasuredJob[];
}

/**
 * Returns variants of a job that exchange each gradient separately: after the backward pass, during the backward pass,
 * and with DeAR (reduce-scatter and all-gather around the end of the step). The variants show how much messages slow
 * computation, and how much computation slows messages.
 */
const exchangeVariants = async (first: ProfiledJob): Promise<Variant[]> => {
  const variants: Variant[] = [];
  for (const [overlap, when] of [
    ["none", "after the backward pass"],
    ["wait-free", "during the backward pass"],
    ["dear", "in halves around the end of a step"],
  ] as const)
    try {
      variants.push({
        job: await first.with(eachByItself(overlap)),
        name: `${first.facts.name}, each gradient by itself ${when}`,
        rounds: [],
      });
    } catch (error) {
      // A job may not support this exchange.
      if (!(error instanceof SkeinError) || error.kind !== "user") throw error;
    }
  return variants;
};

/** Formats the fitted running costs as lines of text. */
const runningLines = (running: RunningCosts, ranks: number): string[] => {
  const { secondsPerStep, secondsPerCollective, collectiveLatencySeconds, secondsPerByteBeside } = running;
  const { stepVariation, messageDelaySeconds, overlapSlowdown = 0 } = running;
  const stepLine = `steps        ${millisecondsText(secondsPerStep)} outside of kernels`;
  if (ranks === 1) return [stepLine];
  return [
    `${stepLine}; ranks differ by ${(100 * stepVariation).toFixed(0)} % within a step`,
    `collectives  ${millisecondsText(secondsPerCollective)} to start one, ${millisecondsText(collectiveLatencySeconds)} in addition to its messages`,
    `overlap      ${(1e9 * secondsPerByteBeside).toPrecision(3)} ns/B on a computing rank, kernels ${(100 * overlapSlowdown).toFixed(0)} % slower, messages ${millisecondsText(messageDelaySeconds)} later`,
  ];
};

/**
 * Returns the kernel timing samples of runs that send no messages during computation, because the slowdown by messages
 * is a separate cost. For an operator that these runs do not contain, returns the samples of the other runs.
 */
const undisturbedSamples = (runs: readonly MeasuredJob[], device: ComputeDevice): KernelSample[] => {
  const byOverlap = Map.groupBy(runs, (run) => overlapsOf(run.programOn(device)).length > 0);
  const [overlapped, undisturbed] = [true, false].map((isOverlapped) =>
    (byOverlap.get(isOverlapped) ?? []).flatMap((run) => run.samples()),
  ) as [KernelSample[], KernelSample[]];
  const known = new Set(undisturbed.map(({ operator }) => operator));
  return [...undisturbed, ...overlapped.filter(({ operator }) => !known.has(operator))];
};

/**
 * Implements `skein-profile calibrate`: measures this machine with kernels and jobs, and writes a hardware file for
 * predictions.
 */
export const calibrateCommand = async (
  files: readonly string[],
  { steps, warmUp, rounds: asked, output, ...jobOptions }: CalibrateCommandOptions,
): Promise<number> => {
  const counted = countOf("steps", steps, 2);
  const warmUpSteps = countOf("warm-up", warmUp, 0);
  const rounds = countOf("rounds", asked, 1);
  const report = (line: string): void => writeStderr(`${line}\n`);
  const jobs = await Promise.all(files.map((file) => openJob(file, jobOptions)));
  const [first] = jobs;
  if (first === undefined)
    throw new ArgumentError(
      "no job was named, and calibrate needs at least one; name jobs whose operators and ranks are like those that you will predict",
    );
  const { ranks, transport, backend } = first.facts;
  const other = jobs.find(
    ({ facts }) => facts.ranks !== ranks || facts.transport !== transport || facts.backend !== backend,
  );
  if (other !== undefined)
    throw new ArgumentError(
      `${first.facts.name} has ${ranks} ranks over ${transport} on ${backend}, ${other.facts.name} has ${other.facts.ranks} over ${other.facts.transport} on ${other.facts.backend}; a hardware file describes one machine: set --ranks and --transport for all jobs`,
    );
  report("measuring single kernels");
  const rates = await first.rates();
  const source = `measured by skein-profile calibrate on ${new Date().toISOString().slice(0, 10)}: ${describeMachine()}`;
  const described = {
    name: `${ranks === 1 ? "one rank" : `each of ${ranks} ranks`} of ${describeMachine()}`,
    kind: backend === "cpu" ? "cpu" : "gpu",
    source,
  } as const;
  const variants = [
    ...jobs.map((job): Variant => ({ job, name: job.facts.name, rounds: [] })),
    ...(ranks > 1 ? await exchangeVariants(first) : []),
  ];
  const grid = backend === "cpu" ? await measureKernelGrid() : [];
  for (let round = 1; round <= rounds; round++)
    for (const variant of variants) {
      report(`measuring ${variant.name}: ${warmUpSteps + counted} steps, round ${round} of ${rounds}`);
      variant.rounds.push(await measureJob(variant.job, { steps: counted, warmUpSteps }));
    }
  const runs = variants.flatMap((variant) => variant.rounds);
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
    report(`measuring links over ${transport}`);
    return { ...linkCosts(await first.links()), contention: noContention, source };
  };
  const kernels: HardwareFile = {
    format: "skein-hardware",
    version: 1,
    name: `this machine, ${ranks} ${ranks === 1 ? "rank" : "ranks"}`,
    description: `${describeMachine()}; ${ranks} ranks over ${transport}`,
    device: calibrateDevice(rates, samples, described),
    topology: { ranks, ranksPerHost: ranks },
    links: await linksOf(),
  };
  const { running, fits } = fitRunningCosts(
    variants.map(({ job, rounds: own }) => ({
      job,
      rounds: own.map((run) => run.steps),
      program: pricePrepared(own[0]!.step, job, kernels),
    })),
    kernels,
  );
  const device = { ...kernels.device, running };
  const calibrated = fits.map((fit, i) => ({ name: variants[i]!.name, ...fit }));
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
