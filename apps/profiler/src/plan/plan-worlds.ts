import { bucketOfScope, computeSeconds, type StepProgram } from "@skein/cost-model/pricing";
import type { HardwareFile } from "@skein/cost-model/hardware";
import { ArgumentError, SkeinError } from "@skein/tensor-core";
import type { ProfiledJob } from "skein-train/profiling";
import { pricedStep } from "../predict/predict-step.ts";
import { type BaseSteps, basesAt, baseSteps } from "./base-steps.ts";
import { compressions, dense, type Settings, setOf } from "../predict/candidates.ts";
import { type SearchResult, searchConfigurations } from "./search.ts";

/**
 * Batch size that stays constant when the number of ranks changes: the batch per rank, or the global batch of all
 * ranks.
 */
export type Keep = "rank-batch" | "global-batch";

/** Result of the search for the fastest configuration of a job on a given number of ranks. */
export interface PlannedWorld extends SearchResult {
  readonly ranks: number;
  readonly job: ProfiledJob;
  /** Job settings that change the job to this number of ranks. */
  readonly resizing: Settings;
  readonly samplesPerSecond: number;
  /** Scaling efficiency: samples per second per rank, divided by the samples per second of a single rank. */
  readonly efficiency: number;
  /**
   * Time of an epoch in seconds, computed with full steps only. Infinite for a job whose samples are a stream (see
   * `data.stream`).
   */
  readonly epochSeconds: number;
}

export interface PlanWorldsOptions {
  readonly ranks: readonly number[];
  readonly keep: Keep;
  readonly lossless: boolean;
}

export interface PlannedWorlds {
  /** Results in ascending order of the number of ranks. */
  readonly worlds: readonly PlannedWorld[];
  /** Rank counts that were skipped: one line with the reason for each. */
  readonly leftOut: readonly string[];
}

/** Returns the seconds that a rank computes in a step without gradient exchange. */
const aloneSeconds = (whole: StepProgram): number =>
  computeSeconds(whole.filter(({ scope }) => bucketOfScope(scope) === undefined));

/**
 * Returns a key for the set of exchanged gradients. The set depends on the number of ranks: with few ranks, a single
 * rank may hold gradients that several ranks share in a larger run.
 */
const sentKey = (job: ProfiledJob): string => {
  const groups = job.groups();
  return job
    .gradients()
    .map(({ axis }) => groups[axis]!.groups[0]!.length > 1)
    .join();
};

/** A job changed to another number of ranks, and the settings that were changed. */
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
    // The number of ranks must also divide the evaluation batch size.
    const shared = { ...resizing, "evaluation.batch": ranks };
    const job = await own.with(setOf(shared)).catch(() => undefined);
    if (job === undefined) throw error;
    return { job, resizing: shared };
  }
};

/**
 * Scores exchanges of a job's gradients for several rank counts.
 *
 * If the batch per rank is constant, the computation does not depend on the number of ranks, so steps are traced once
 * for all rank counts that exchange the same gradients. If the global batch is constant, steps are traced for each rank
 * count.
 *
 * @throws ArgumentError if all rank counts were skipped.
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
      leftOut.push("1 rank: exchanges nothing; efficiencies are relative to it");
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
    const keepsGlobalBatch = keep === "global-batch" && ranks.length > 1;
    const sent = sentKey(job);
    if (keepsGlobalBatch || traced?.sent !== sent) traced = { bases: await baseSteps(job, hardware), sent };
    alone ??= keepsGlobalBatch
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
    const singleRankSpeed = (keepsGlobalBatch ? samplesPerStep : samplesPerStep / count) / alone;
    worlds.push({
      ...result,
      ranks: count,
      job,
      resizing,
      samplesPerSecond: samplesPerStep / seconds,
      efficiency: samplesPerStep / seconds / count / singleRankSpeed,
      epochSeconds: Math.floor(trainSamples / samplesPerStep) * seconds,
    });
  }
  if (worlds.length === 0) throw new ArgumentError(`no number of ranks is left to plan for: ${leftOut.join("; ")}`);
  return { worlds, leftOut };
};
