import {
  collectivePricers,
  type HardwareFile,
  isStart,
  kernelPricer,
  linkModelOfGroup,
  rebucket,
  type StartStep,
  type StepProgram,
} from "@skein/cost-model";
import { ArgumentError, SkeinError } from "@skein/tensor-core";
import type { ProfiledJob } from "skein-train/profiling";
import { groupsOn } from "../predict/groups-on.ts";
import { pricedStep, simulateStep } from "../predict/predict-step.ts";
import { compressions, deferredBuckets, type Settings } from "./candidates.ts";
import { groupingsOf, messagesOf } from "./groupings.ts";

/** A configuration, and what a step is expected to take with it. */
export interface Scored {
  /** What it changes of the job. */
  readonly settings: Settings;
  readonly seconds: number;
  readonly exposedSeconds: number;
  /** What a rank sends in a step. */
  readonly sentBytes: number;
}

export interface SearchResult {
  /** Fastest first. */
  readonly scored: readonly Scored[];
  /** What was left out, and why: a line each. */
  readonly leftOut: readonly string[];
}

/** Opens the job with some settings. */
export type OpenWith = (settings: Settings) => Promise<ProfiledJob>;

/**
 * Score ways to exchange a job's gradients on some hardware: compressions, when messages travel, and which gradients travel together.
 *
 * Each compression is traced once, with a message for each tensor; what other buckets and no overlap would make of it follows by `rebucket`. Those that
 * need several messages, and steps in halves, are traced each.
 *
 * Cost: a trace for each compression and each configuration in halves; a simulation for each other one.
 */
export const searchConfigurations = async (open: OpenWith, hardware: HardwareFile, lossless: boolean): Promise<SearchResult> => {
  const scored: Scored[] = [];
  const leftOut: string[] = [];
  const score = (job: ProfiledJob, program: StepProgram, settings: Settings): void => {
    const { stepSeconds, exposedSeconds } = simulateStep(job, program, hardware, { spans: false });
    const sentBytes = program.filter(isStart).reduce((sum, { price }) => sum + price.sentBytes, 0);
    scored.push({ settings, seconds: stepSeconds, exposedSeconds: Math.max(...exposedSeconds), sentBytes });
  };
  /** Trace a configuration; nothing where it does not go together, such as a compression that cannot be halved. */
  const tracedStep = async (settings: Settings): Promise<{ readonly job: ProfiledJob; readonly program: StepProgram } | undefined> => {
    try {
      const job = await open(settings);
      return { job, program: pricedStep(job, hardware) };
    } catch (error) {
      if (!(error instanceof SkeinError) || error.kind !== "user") throw error;
      leftOut.push(`${JSON.stringify(settings)}: ${error.message.split("\n")[0]}`);
      return undefined;
    }
  };
  const traced = async (settings: Settings): Promise<void> => {
    const found = await tracedStep(settings);
    if (found !== undefined) score(found.job, found.program, settings);
  };
  const priceKernel = kernelPricer(hardware.device);
  let denseBytes: ReadonlyMap<number, number> | undefined;
  for (const compression of lossless ? compressions.slice(0, 1) : compressions) {
    const base = await tracedStep({ compression, overlap: "wait-free", buckets: { kind: "per-tensor" } });
    if (base === undefined) continue;
    const { job, program } = base;
    const groups = groupsOn(job, hardware);
    denseBytes ??= new Map(messagesOf(program).map(({ bucket, bytes }) => [bucket, bytes]));
    const [first] = program.filter((step) => isStart(step) && step.scope.startsWith("exchange-")) as StartStep[];
    if (first === undefined) throw new ArgumentError("the job exchanges nothing: it has one rank; plan with --ranks 2 or more");
    const collectives = collectivePricers(groups);
    const groupings = groupingsOf(program, denseBytes, linkModelOfGroup(groups[first.axis]!, first.collective));
    for (const { buckets, groups: together } of groupings)
      for (const overlap of ["wait-free", "none"] as const) {
        const settings = { compression, overlap, buckets };
        try {
          score(job, rebucket(program, { groups: together, overlap, priceKernel, collectives }), settings);
        } catch (error) {
          if (!(error instanceof ArgumentError)) throw error;
          await traced(settings); // several messages a bucket
        }
      }
    for (const buckets of deferredBuckets) await traced({ compression, overlap: "dear", buckets });
  }
  return { scored: scored.toSorted((a, b) => a.seconds - b.seconds), leftOut };
};
