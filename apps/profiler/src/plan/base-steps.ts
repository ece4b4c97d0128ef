import {
  bucketOfScope,
  foldKernels,
  type GradientProfile,
  type HardwareFile,
  reprice,
  type StepProgram,
} from "@skein/cost-model";
import { ArgumentError, SkeinError } from "@skein/tensor-core";
import type { ProfiledJob } from "skein-train/profiling";
import { pricersOn } from "../predict/groups-on.ts";
import { pricedStep } from "../predict/predict-step.ts";
import { eachByItself } from "../predict/candidates.ts";
import { messagesOf } from "../predict/groupings.ts";

/** The dense step of a job with a message for each tensor: what all other ways to exchange are made of. */
export interface BaseSteps {
  /** Messages travel beside the backward pass. */
  readonly whole: StepProgram;
  /** In halves, around the end of a step; a line that says why, where the job cannot be trained so. */
  readonly halves: StepProgram | { readonly refused: string };
}

/**
 * Trace both steps. Cost: that of compiling two steps, without kernels: seconds for a large model.
 *
 * @throws ArgumentError for a job that exchanges nothing.
 */
export const baseSteps = async (job: ProfiledJob, hardware: HardwareFile): Promise<BaseSteps> => {
  if (job.facts.ranks === 1)
    throw new ArgumentError("the job exchanges nothing: it has one rank; plan with --ranks 2 or more");
  const traced = async (overlap: "wait-free" | "dear"): Promise<StepProgram> =>
    foldKernels(pricedStep(await job.with(eachByItself(overlap)), hardware));
  const inHalves = async (): Promise<BaseSteps["halves"]> => {
    try {
      return await traced("dear");
    } catch (error) {
      if (!(error instanceof SkeinError) || error.kind !== "user") throw error;
      return { refused: error.message.split("\n")[0]! };
    }
  };
  return { whole: await traced("wait-free"), halves: await inHalves() };
};

/** The same steps for another number of ranks, each with as many samples. */
export const basesAt = ({ whole, halves }: BaseSteps, job: ProfiledJob, hardware: HardwareFile): BaseSteps => {
  const pricers = pricersOn(job, hardware);
  return { whole: reprice(whole, pricers), halves: "refused" in halves ? halves : reprice(halves, pricers) };
};

/**
 * Seconds of computing between the waits for parameters at the begin of a step in halves, by the number of their
 * bucket: what needs each of them.
 */
const forwardSeconds = (halves: StepProgram): ReadonlyMap<number, number> => {
  const seconds = new Map<number, number>();
  let current: number | undefined;
  for (const step of halves) {
    if (step.kind === "start" && step.scope === "mean-loss") break;
    if (step.kind === "wait") current = bucketOfScope(step.scope) ?? current;
    if (current === undefined) continue;
    seconds.set(current, (seconds.get(current) ?? 0) + (step.kind === "kernel" ? step.price.seconds : 0));
  }
  return seconds;
};

/**
 * The gradients of a step as planners know them, in the order in which they become ready; paths are numbers of buckets,
 * and the first one's backward pass holds the forward pass.
 */
export const profileOf = ({ whole, halves }: BaseSteps): GradientProfile => {
  const forward = "refused" in halves ? new Map<number, number>() : forwardSeconds(halves);
  const messages = messagesOf(whole);
  return {
    tensors: messages.map(({ bucket, bytes, readySeconds }, i) => ({
      path: String(bucket),
      bytes,
      backwardSeconds: Math.max(0, readySeconds - (messages[i - 1]?.readySeconds ?? 0)),
      forwardSeconds: forward.get(bucket) ?? 0,
    })),
  };
};
