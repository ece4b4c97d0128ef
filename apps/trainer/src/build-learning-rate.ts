import { cosineDecay, type Schedule, stepDecay, warmUp } from "@skein/tensor-core";
import type { LearningRateJob } from "./job.ts";

const buildDecay = ({ decay, peak, final, factor, everySteps }: LearningRateJob, steps: number): Schedule => {
  switch (decay) {
    case "constant":
      return peak;
    case "cosine":
      return cosineDecay({ initial: peak, final, steps });
    case "step":
      return stepDecay({ initial: peak, factor, every: everySteps! });
  }
};

/** @param totalSteps steps of the whole run: where a cosine ends. */
export const buildLearningRate = (job: LearningRateJob, totalSteps: number): Schedule =>
  warmUp(job.warmupSteps, buildDecay(job, Math.max(1, totalSteps - job.warmupSteps)));
