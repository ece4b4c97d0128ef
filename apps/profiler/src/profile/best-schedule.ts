import type { ClusterLinks, ComputeDevice, HardwareFile } from "@skein/cost-model/hardware";
import { learnEfficiencies } from "@skein/cost-model/calibration";
import { ArgumentError } from "@skein/tensor-core";
import type { ProfiledJob } from "skein-train/profiling";
import { fitRunningCosts } from "../calibrate/running-costs.ts";
import { linksOfThreads, noContention, threadLinks } from "../calibrate/thread-links.ts";
import { baseSteps } from "../plan/base-steps.ts";
import { dense, type Settings } from "../predict/candidates.ts";
import { searchConfigurations } from "../plan/search.ts";
import { pricePrepared } from "../predict/predict-step.ts";
import type { MeasuredJob } from "./measure-job.ts";

/** Fastest exchange of the gradients with the job's compression, predicted from measurements of a run. */
export interface BestSchedule {
  /** Job settings that select this schedule. */
  readonly settings: Settings;
  readonly seconds: number;
  /** Predicted step time in seconds of the job with its current schedule, from the same kernel and message costs. */
  readonly ownSeconds: number;
  readonly configurations: number;
  /** Source of the link costs, as text for the report. */
  readonly links: string;
}

/** Returns the links of a run on one machine: from the job's link file, or fitted to collectives of the run. */
const measuredLinks = (job: ProfiledJob, { steps }: Pick<MeasuredJob, "steps">): ClusterLinks => {
  const named = job.groups()["data"]!.situation.link;
  if (named !== undefined) return { ...named, contention: noContention, source: "the job's link file" };
  return linksOfThreads(threadLinks(steps, job.facts.ranks), "links fitted to this run's collectives");
};

/** Returns a hardware description of this machine, with the kernel times measured in a run. */
const hardwareOfRun = (
  job: ProfiledJob,
  measured: Pick<MeasuredJob, "steps" | "samples">,
  device: ComputeDevice,
): HardwareFile => {
  const { ranks } = job.facts;
  const links = measuredLinks(job, measured);
  return {
    format: "skein-hardware",
    version: 1,
    name: "this run",
    description: `measured by ${ranks} ranks of ${job.facts.name}`,
    device: { ...device, efficiencies: learnEfficiencies(device, measured.samples()) },
    topology: { ranks, ranksPerHost: ranks },
    links,
  };
};

/**
 * Searches for a better schedule for a run: other overlap and buckets with the same compression. Predictions use the
 * kernel and message times measured in the run.
 *
 * @param device Device whose roofline defines the kernel efficiencies.
 * @returns the schedule; undefined for a single rank, or if all collectives of the run have the same size, because
 * fitting the links needs two sizes.
 */
export const bestSchedule = async (
  job: ProfiledJob,
  measured: Pick<MeasuredJob, "steps" | "samples" | "step">,
  device: ComputeDevice,
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
  const { compression: _, ...settings } = found; // compression is not changed
  return { settings, seconds, ownSeconds, configurations: scored.length, links: hardware.links.source };
};
