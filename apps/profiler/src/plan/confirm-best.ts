import type { HardwareFile } from "@skein/cost-model/hardware";
import type { ProfiledJob } from "skein-train/profiling";
import { type Prediction, predictStep } from "../predict/predict-step.ts";
import { setOf } from "../predict/candidates.ts";
import type { Scored } from "./score.ts";

/** The fastest configuration, with the prediction from its traced step. */
export interface Confirmed {
  readonly best: Scored;
  /** Prediction of the traced step, equal to the output of `skein-profile predict`. */
  readonly prediction: Prediction;
}

/** Maximum number of configurations to trace. */
const most = 3;

/**
 * Traces steps of the configurations, fastest score first, until each remaining score is slower than the fastest traced
 * step.
 *
 * @param scored Configurations with scores, fastest first; not empty.
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
