import { type JobOptions, openJob } from "skein-train/profiling";
import { exitCodes } from "../errors.ts";
import { hardwareOf } from "../predict/hardware-of.ts";
import { predictStep } from "../predict/predict-step.ts";
import { predictionLines } from "../predict/prediction-lines.ts";

export interface PredictCommandOptions extends Pick<JobOptions, "ranks" | "transport" | "set"> {
  readonly hardware: string;
  readonly json?: boolean;
}

/** `skein-profile predict`: what a step of a job would take on some hardware. */
export const predictCommand = async (
  file: string,
  { hardware, json = false, ...jobOptions }: PredictCommandOptions,
): Promise<number> => {
  const machine = hardwareOf(hardware);
  const job = await openJob(file, jobOptions);
  const prediction = await predictStep(job, machine);
  const lines = json
    ? [
        JSON.stringify({
          job: job.facts,
          hardware: machine.name,
          stepSeconds: prediction.simulated.stepSeconds,
          exposedSeconds: prediction.simulated.exposedSeconds,
        }),
      ]
    : predictionLines(job.facts, machine, prediction);
  for (const line of lines) process.stdout.write(`${line}\n`);
  return exitCodes.ok;
};
