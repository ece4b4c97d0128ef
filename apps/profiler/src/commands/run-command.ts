import { type JobOptions, openJob } from "skein-train/profiling";
import { exitCodes } from "../errors.ts";
import { countOf } from "./count-of.ts";
import { machineInWords } from "../machine.ts";
import { claimFolder, dropUnused, writeReport } from "../outputs.ts";
import { hardwareOf } from "../predict/hardware-of.ts";
import { predictStep } from "../predict/predict-step.ts";
import { buildReport } from "../profile/build-report.ts";
import { deviceHere } from "../profile/device-here.ts";
import { measureJob } from "../profile/measure-job.ts";

export interface RunCommandOptions extends Pick<JobOptions, "ranks" | "transport" | "set"> {
  readonly steps: string;
  readonly warmUp: string;
  readonly output?: string;
  readonly hardware?: string;
  readonly json?: boolean;
}

/** `skein-profile run`. */
export const runCommand = async (
  file: string,
  { steps, warmUp, output, hardware, json = false, ...jobOptions }: RunCommandOptions,
): Promise<number> => {
  const [counted, warmUpSteps] = [countOf("steps", steps, 1), countOf("warm-up", warmUp, 0)];
  const job = await openJob(file, jobOptions);
  const { facts } = job;
  const folder = claimFolder(facts.name, output);
  const say = (line: string): void => void (json || process.stderr.write(`${line}\n`));
  say(
    `${facts.name}: ${warmUpSteps} steps to warm up and ${counted} that count, on ${facts.ranks} ${facts.ranks === 1 ? "rank" : "ranks"} (${facts.backend}, ${facts.transport})`,
  );
  const abort = new AbortController();
  const stop = (): void => {
    say("stopping after this step; the report is of those that were made; once more to exit at once");
    process.once("SIGINT", () => process.exit(exitCodes.interrupted));
    abort.abort();
  };
  process.once("SIGINT", stop);
  try {
    const described = hardware === undefined ? undefined : hardwareOf(hardware);
    const device = described?.device ?? (await deviceHere(job));
    const prediction = described && (await predictStep(job, described));
    const measured = await measureJob(job, { steps: counted, warmUpSteps, signal: abort.signal });
    if (measured.steps.length === 0 && abort.signal.aborted) {
      dropUnused(folder);
      say("stopped before the first step that counts; there is no report");
      return exitCodes.interrupted;
    }
    const report = buildReport({
      facts,
      measured,
      priced: { step: measured.step, stateBytes: facts.stateBytes, program: prediction?.program ?? measured.programOn(device), device },
      warmUpSteps,
      madeAt: new Date(),
      machine: machineInWords(),
      predicted: prediction && { ranks: prediction.simulated.ranks, stepSeconds: prediction.simulated.stepSeconds },
    });
    writeReport(folder, report, measured, { json, columns: process.stdout.columns });
    return abort.signal.aborted ? exitCodes.interrupted : exitCodes.ok;
  } catch (error) {
    dropUnused(folder);
    throw error;
  } finally {
    process.off("SIGINT", stop);
  }
};
