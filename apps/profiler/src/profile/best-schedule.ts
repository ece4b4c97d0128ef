import { type ClusterLinks, type Device, type HardwareFile, learnEfficiencies } from "@skein/cost-model";
import { ArgumentError } from "@skein/tensor-core";
import type { ProfiledJob } from "skein-train/profiling";
import { fitRunningCosts } from "../calibrate/running-costs.ts";
import { linksOfThreads, noContention, threadLinks } from "../calibrate/thread-links.ts";
import { baseSteps } from "../plan/base-steps.ts";
import { dense, type Settings } from "../predict/candidates.ts";
import { searchConfigurations } from "../plan/search.ts";
import { pricePrepared } from "../predict/predict-step.ts";
import type { MeasuredJob } from "./measure-job.ts";

/** The fastest way to exchange the same gradients without losing more of them, by what a run has measured. */
export interface BestSchedule {
  /** Of the job, that make it so. */
  readonly settings: Settings;
  readonly seconds: number;
  /** The step as it was run, by the same prices. */
  readonly ownSeconds: number;
  readonly configurations: number;
  /** Where the times of messages come from. */
  readonly links: string;
}

/** The links of a run on one machine: of the job's link file, or fitted to its collectives. */
const measuredLinks = (job: ProfiledJob, { steps }: Pick<MeasuredJob, "steps">): ClusterLinks => {
  const named = job.groups()["data"]!.situation.link;
  if (named !== undefined) return { ...named, contention: noContention, source: "the job's link file" };
  return linksOfThreads(threadLinks(steps, job.facts.ranks), "a line through this run's collectives");
};

/** This machine as a run has shown it: each kernel by its own time. */
const hardwareOfRun = (
  job: ProfiledJob,
  measured: Pick<MeasuredJob, "steps" | "samples">,
  device: Device,
): HardwareFile => {
  const { ranks } = job.facts;
  const links = measuredLinks(job, measured);
  return {
    format: "skein-hardware",
    version: 1,
    name: "this run",
    description: `as ${ranks} ranks of ${job.facts.name} have measured it`,
    device: { ...device, efficiencies: learnEfficiencies(device, measured.samples()) },
    topology: { ranks, ranksPerHost: ranks },
    links,
  };
};

/**
 * Search for the schedule that a run should have had: overlap and buckets of the same compression, priced by the run's
 * own kernels and messages.
 *
 * @param device whose roofline the kernels' shares are of.
 * @returns undefined where the run had no two collectives of different sizes, so that nothing is known of its links, or
 * one rank.
 */
export const bestSchedule = async (
  job: ProfiledJob,
  measured: Pick<MeasuredJob, "steps" | "samples" | "step">,
  device: Device,
): Promise<BestSchedule | undefined> => {
  if (job.facts.ranks === 1) return undefined;
  let hardware: HardwareFile;
  try {
    hardware = hardwareOfRun(job, measured, device);
  } catch (error) {
    if (error instanceof ArgumentError) return undefined;
    throw error;
  }
  const program = pricePrepared(measured.step, job, hardware);
  const { running, fits } = fitRunningCosts([{ job, rounds: [measured.steps], program }], hardware);
  const ownSeconds = fits[0]!.predictedSeconds;
  hardware = { ...hardware, device: { ...hardware.device, running } };
  const compressions = job.facts.compression === "identity" ? [dense] : (["own"] as const);
  const { scored } = await searchConfigurations({ job, hardware, bases: await baseSteps(job, hardware), compressions });
  const { settings: found, seconds } = scored[0]!;
  const { compression: _, ...settings } = found; // it stays
  return { settings, seconds, ownSeconds, configurations: scored.length, links: hardware.links.source };
};
