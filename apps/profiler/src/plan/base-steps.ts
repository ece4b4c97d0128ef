import { bucketOfScope, foldKernels, reprice, type StepProgram } from "@skein/cost-model/pricing";
import type { GradientProfile } from "@skein/cost-model";
import type { HardwareFile } from "@skein/cost-model/hardware";
import { ArgumentError, SkeinError } from "@skein/tensor-core";
import type { ProfiledJob } from "skein-train/profiling";
import { pricersOn } from "../predict/groups-on.ts";
import { pricedStep } from "../predict/predict-step.ts";
import { eachByItself } from "../predict/candidates.ts";
import { messagesOf } from "../predict/groupings.ts";

/**
 * The two traced dense steps of a job, without compression and with one message per tensor, with the predicted time of
 * each operation. The steps of all other gradient exchanges are derived from these two steps.
 */
export interface BaseSteps {
  /** Step whose messages are sent during the backward pass. */
  readonly whole: StepProgram;
  /**
   * Step with DeAR, which sends each gradient by a reduce-scatter before the end of the step and by an all-gather after
   * the end. If the job does not support DeAR: the reason in one line.
   */
  readonly halves: StepProgram | { readonly refused: string };
}

/**
 * Traces both dense steps and predicts their times. Cost: compiling two steps without running kernels, which takes
 * seconds for a large model.
 *
 * @throws ArgumentError if the job has a single rank, because it exchanges nothing.
 */
export const baseSteps = async (job: ProfiledJob, hardware: HardwareFile): Promise<BaseSteps> => {
  if (job.facts.ranks === 1)
    throw new ArgumentError(
      "a job of 1 rank exchanges nothing, so there is nothing to plan; plan with --ranks 2 or more",
    );
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

/**
 * Predicts the operation times of both traced steps for another number of ranks, with the same number of samples per
 * rank.
 */
export const basesAt = ({ whole, halves }: BaseSteps, job: ProfiledJob, hardware: HardwareFile): BaseSteps => {
  const pricers = pricersOn(job, hardware);
  return { whole: reprice(whole, pricers), halves: "refused" in halves ? halves : reprice(halves, pricers) };
};

/**
 * Returns the forward time in seconds by bucket number, for a step with DeAR. The forward time of a bucket is the
 * computation between the wait for the bucket's parameters and the next wait.
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
 * Returns the gradient profile of a step for planners, in the order in which gradients become ready. Each path is a
 * bucket number. The backward time of the first gradient includes the forward pass.
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
