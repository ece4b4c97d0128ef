import { type JobOptions, openJob, writeStdout } from "skein-train/profiling";
import { exitCodes } from "../errors.ts";
import { extrapolate, parseMeasuredStep } from "../predict/extrapolation.ts";
import { hardwareOf } from "../predict/hardware-of.ts";
import { predictStep } from "../predict/predict-step.ts";
import { predictionLines } from "../predict/prediction-lines.ts";

export interface PredictCommandOptions extends Pick<JobOptions, "ranks" | "transport" | "set"> {
  readonly hardware: string;
  /** Measured step times of the job, each as RANKS=SECONDS. */
  readonly measured?: readonly string[];
  readonly json?: boolean;
}

/** Implements `skein-profile predict`: predicts the step time of a job on given hardware. */
export const predictCommand = async (
  file: string,
  { hardware, measured = [], json = false, ...jobOptions }: PredictCommandOptions,
): Promise<number> => {
  const given = measured.map(parseMeasuredStep);
  const machine = hardwareOf(hardware);
  const job = await openJob(file, jobOptions);
  const prediction = await predictStep(job, machine);
  const extrapolated = extrapolate(job.facts, machine, given);
  const lines = json
    ? [
        JSON.stringify({
          job: job.facts,
          hardware: machine.name,
          stepSeconds: prediction.simulated.stepSeconds,
          exposedSeconds: prediction.simulated.exposedSeconds,
          ...(extrapolated !== undefined && { extrapolatedStepSeconds: extrapolated.stepSeconds }),
        }),
      ]
    : predictionLines(job.facts, machine, prediction, extrapolated);
  for (const line of lines) writeStdout(`${line}\n`);
  return exitCodes.ok;
};
