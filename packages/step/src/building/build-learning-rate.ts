import type { LearningRateJob } from "@skein/job/node";
import {
  add,
  cosineDecay,
  InvariantError,
  joinSchedules,
  linearRamp,
  maximum,
  polynomialDecay,
  type Schedule,
  stepDecay,
  warmUp,
} from "@skein/tensor-core";

/** Initial learning rate of the one-cycle schedule, as a fraction of its peak. */
const oneCycleStart = 1 / 25;

/** Returns the length, in steps, of a schedule phase: the fraction `share` of `steps`, clamped to 1 … `steps − 1`. */
const stepsOf = (share: number, steps: number): number => Math.min(Math.max(1, Math.round(share * steps)), steps - 1);

const buildDecay = (job: LearningRateJob, steps: number): Schedule => {
  const { decay, peak, final, factor, everySteps, power = 2, decayShare = 0.2, riseShare = 0.3 } = job;
  switch (decay) {
    case "constant":
      return peak;
    case "cosine":
      return cosineDecay({ initial: peak, final, steps });
    case "step":
      return stepDecay({ initial: peak, factor, every: everySteps! });
    case "linear":
      return linearRamp({ from: peak, to: final, steps });
    case "polynomial":
      return polynomialDecay({ initial: peak, final, power, steps });
    case "wsd": {
      // Warm-up, stable, decay: Hu et al. 2024, arXiv 2404.06395, §4.
      if (steps < 2) return peak;
      const falling = stepsOf(decayShare, steps);
      return joinSchedules([peak, linearRamp({ from: peak, to: final, steps: falling })], [steps - falling]);
    }
    case "one-cycle": {
      // Smith and Topin 2018, arXiv 1708.07120, but with cosine in both directions and the initial rate of PyTorch's
      // OneCycleLR.
      if (steps < 2) return peak;
      const rising = stepsOf(riseShare, steps);
      return joinSchedules(
        [
          cosineDecay({ initial: peak * oneCycleStart, final: peak, steps: rising }),
          cosineDecay({ initial: peak, final, steps: steps - rising }),
        ],
        [rising],
      );
    }
  }
};

/** Length of a learning-rate schedule in steps, and its offset from the update count. */
export interface ScheduledSteps {
  /** Total number of steps in the run. Decays reach `final` after the last step. */
  readonly totalSteps: number;
  /** Number of steps by which the schedule is ahead of the update count, see `scheduleOffsetOf`. Default: 0. */
  readonly offset?: number;
}

/** Returns the number of steps that the learning-rate schedule covers, including the offset. */
export const scheduleStepsOf = ({ totalSteps, offset = 0 }: ScheduledSteps): number => totalSteps + offset;

/**
 * Builds the learning-rate schedule of a job.
 * @param own user schedule after the warm-up, if the job names one.
 */
export const buildLearningRate = (job: LearningRateJob, steps: ScheduledSteps, own?: Schedule): Schedule => {
  if (job.schedule !== undefined && own === undefined)
    throw new InvariantError("a learning rate was built without its user schedule");
  const numSteps = Math.max(1, scheduleStepsOf(steps) - job.warmupSteps);
  const schedule = warmUp(job.warmupSteps, own ?? buildDecay(job, numSteps));
  const { offset = 0 } = steps;
  if (offset === 0 || typeof schedule === "number") return schedule;
  return (step) => schedule(maximum(add(step, offset), 0)); // below 0 if more updates were skipped than steps completed
};
