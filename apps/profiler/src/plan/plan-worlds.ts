import { bucketOfScope, computeSeconds, type HardwareFile, type StepProgram } from "@skein/cost-model";
import { ArgumentError, SkeinError } from "@skein/tensor-core";
import type { ProfiledJob } from "skein-train/profiling";
import { pricedStep } from "../predict/predict-step.ts";
import { type BaseSteps, basesAt, baseSteps } from "./base-steps.ts";
import { compressions, dense, type Settings, setOf } from "../predict/candidates.ts";
import { type SearchResult, searchConfigurations } from "./search.ts";

/** What stays when the number of ranks changes: the samples of each rank in a step, or those of all together. */
export type Keep = "rank-batch" | "global-batch";

/** The configurations of a job for one number of ranks. */
export interface PlannedWorld extends SearchResult {
  readonly ranks: number;
  readonly job: ProfiledJob;
  /** What of the job makes it one of so many ranks. */
  readonly resizing: Settings;
  readonly samplesPerSecond: number;
  /** Samples per second of a rank, over those of one alone. */
  readonly efficiency: number;
  /** Of an epoch, whole steps. */
  /** Infinite of a job whose samples come by, see `data.stream`. */
  readonly epochSeconds: number;
}

export interface PlanWorldsOptions {
  readonly ranks: readonly number[];
  readonly keep: Keep;
  readonly lossless: boolean;
}

export interface PlannedWorlds {
  /** In the order of their ranks. */
  readonly worlds: readonly PlannedWorld[];
  /** Numbers of ranks that were left out, and why: a line each. */
  readonly leftOut: readonly string[];
}

/** What a rank computes for itself, with nobody to exchange with. */
const aloneSeconds = (whole: StepProgram): number =>
  computeSeconds(whole.filter(({ scope }) => bucketOfScope(scope) === undefined));

/** Which gradients travel: a rank may have alone with few ranks what several have with more. */
const sentOf = (job: ProfiledJob): string => {
  const groups = job.groups();
  return job
    .gradients()
    .map(({ axis }) => groups[axis]!.groups[0]!.length > 1)
    .join();
};

/** A job with another number of ranks, and what makes it of the other. */
interface Resized {
  readonly job: ProfiledJob;
  readonly resizing: Settings;
}

const withRanks = async (own: ProfiledJob, ranks: number, keep: Keep): Promise<Resized> => {
  const { samplesPerStep, ranks: before } = own.facts;
  if (ranks === before) return { job: own, resizing: {} };
  const resizing = { ranks, batch: keep === "global-batch" ? samplesPerStep : (samplesPerStep / before) * ranks };
  try {
    return { job: await own.with(setOf(resizing)), resizing };
  } catch (error) {
    // The samples that are evaluated at once must be shared by all ranks, too.
    const shared = { ...resizing, "evaluation.batch": ranks };
    const job = await own.with(setOf(shared)).catch(() => undefined);
    if (job === undefined) throw error;
    return { job, resizing: shared };
  }
};

/**
 * Score ways to exchange a job's gradients for several numbers of ranks.
 *
 * Where each rank keeps its samples, what it computes is the same for any number of ranks, so whole steps are traced
 * once for all that send the same gradients; else for each number.
 *
 * @throws ArgumentError where no number of ranks is left.
 */
export const planWorlds = async (
  own: ProfiledJob,
  hardware: HardwareFile,
  { ranks, keep, lossless }: PlanWorldsOptions,
): Promise<PlannedWorlds> => {
  const worlds: PlannedWorld[] = [];
  const leftOut: string[] = [];
  let traced: { readonly bases: BaseSteps; readonly sent: string } | undefined;
  let alone: number | undefined;
  for (const count of ranks) {
    if (ranks.length > 1 && count > hardware.topology.ranks) {
      leftOut.push(`${count} ranks: ${hardware.name} has ${hardware.topology.ranks}`);
      continue;
    }
    if (ranks.length > 1 && count === 1) {
      leftOut.push("1 rank: it exchanges nothing; efficiencies are beside it");
      continue;
    }
    let resized: Resized;
    try {
      resized = await withRanks(own, count, keep);
    } catch (error) {
      if (!(error instanceof SkeinError) || error.kind !== "user" || ranks.length === 1) throw error;
      leftOut.push(`${count} ranks: ${error.message.split("\n")[0]}`);
      continue;
    }
    const { job, resizing } = resized;
    const isOfAll = keep === "global-batch" && ranks.length > 1;
    const sent = sentOf(job);
    if (isOfAll || traced?.sent !== sent) traced = { bases: await baseSteps(job, hardware), sent };
    alone ??= isOfAll
      ? computeSeconds(pricedStep((await withRanks(own, 1, keep)).job, hardware))
      : aloneSeconds(traced.bases.whole);
    const result = await searchConfigurations({
      job,
      hardware,
      bases: basesAt(traced.bases, job, hardware),
      compressions: lossless ? [dense] : compressions,
    });
    const { samplesPerStep, trainSamples } = job.facts;
    const { seconds } = result.scored[0]!;
    const ofOne = (keep === "global-batch" && ranks.length > 1 ? samplesPerStep : samplesPerStep / count) / alone;
    worlds.push({
      ...result,
      ranks: count,
      job,
      resizing,
      samplesPerSecond: samplesPerStep / seconds,
      efficiency: samplesPerStep / seconds / count / ofOne,
      epochSeconds: Math.floor(trainSamples / samplesPerStep) * seconds,
    });
  }
  if (worlds.length === 0) throw new ArgumentError(`no number of ranks is left to plan for: ${leftOut.join("; ")}`);
  return { worlds, leftOut };
};
