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
import type { LearningRateJob } from "../job/job.ts";

/** What one-cycle begins with, as a part of its peak. */
const oneCycleStart = 1 / 25;

/** Steps of a share of all, of which at least one is left on both sides. */
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
      // Smith and Topin 2018, arXiv 1708.07120, with both ways along a cosine and the start that PyTorch's OneCycleLR
      // has.
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

/** Which steps a schedule is for. */
export interface ScheduledSteps {
  /** Steps done when the run is over: where all that falls to `final` ends. */
  readonly totalSteps: number;
  /** Steps by which the schedule is ahead of the updates made: see `scheduleOffsetOf`. Default: 0. */
  readonly offset?: number;
}

/** Steps of the schedule itself. */
export const scheduleStepsOf = ({ totalSteps, offset = 0 }: ScheduledSteps): number => totalSteps + offset;

/** @param own what follows the warm-up, where a module of the job's says that. */
export const buildLearningRate = (job: LearningRateJob, steps: ScheduledSteps, own?: Schedule): Schedule => {
  if (job.schedule !== undefined && own === undefined)
    throw new InvariantError("a learning rate was built without the schedule that its module makes");
  const numSteps = Math.max(1, scheduleStepsOf(steps) - job.warmupSteps);
  const schedule = warmUp(job.warmupSteps, own ?? buildDecay(job, numSteps));
  const { offset = 0 } = steps;
  if (offset === 0 || typeof schedule === "number") return schedule;
  return (step) => schedule(maximum(add(step, offset), 0)); // updates left out may be more than steps ahead
};
