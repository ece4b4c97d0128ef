import type { HardwareFile } from "@skein/cost-model";
import type { ProfiledJob } from "skein-train/profiling";
import { type Prediction, predictStep } from "../predict/predict-step.ts";
import { setOf } from "../predict/candidates.ts";
import type { Scored } from "./score.ts";

/** A configuration whose step was traced whole. */
export interface Confirmed {
  readonly best: Scored;
  /** As `skein-profile predict` has it. */
  readonly prediction: Prediction;
}

/** Configurations that are traced at most. */
const most = 3;

/**
 * Trace the fastest configurations whole, until none that is left was scored below the fastest of those.
 *
 * @param scored fastest first, not empty.
 */
export const confirmBest = async (
  job: ProfiledJob,
  hardware: HardwareFile,
  scored: readonly Scored[],
): Promise<Confirmed> => {
  let found: Confirmed | undefined;
  for (const best of scored.slice(0, most)) {
    if (found !== undefined && found.prediction.simulated.stepSeconds <= best.seconds) break;
    const prediction = await predictStep(await job.with(setOf(best.settings)), hardware);
    if (found === undefined || prediction.simulated.stepSeconds < found.prediction.simulated.stepSeconds)
      found = { best, prediction };
  }
  return found!;
};
