import {
  describeError,
  exitCodeOfSignal,
  type JobOptions,
  onInterrupt,
  openJob,
  writeStderr,
} from "skein-train/profiling";
import { type ProfileReport, secondsText, shareText } from "@skein/report";
import { exitCodes } from "../errors.ts";
import { countOf } from "./count-of.ts";
import { describeMachine } from "../machine.ts";
import { claimFolder, dropUnused, writeReport } from "../outputs.ts";
import { requireNewJob, writeJob } from "../plan/write-job.ts";
import { hardwareOf } from "../predict/hardware-of.ts";
import { predictStep } from "../predict/predict-step.ts";
import { adviceOn, isExposed } from "../profile/advice.ts";
import { bestSchedule } from "../profile/best-schedule.ts";
import { buildReport } from "../profile/build-report.ts";
import { deviceHere } from "../profile/device-here.ts";
import { measureJob } from "../profile/measure-job.ts";

export interface RunCommandOptions extends Pick<JobOptions, "ranks" | "transport" | "set"> {
  readonly steps: string;
  readonly warmUp: string;
  readonly output?: string;
  readonly hardware?: string;
  readonly apply?: string;
  readonly json?: boolean;
}

/**
 * Writes the job file with the change of the schedule that the report recommends, if there is a recommendation.
 *
 * @returns a line that describes the result.
 */
const applyAdvice = (file: string, target: string, { advice, step }: ProfileReport): string => {
  const found = advice.find(({ change }) => change !== undefined);
  if (found?.change === undefined) return `${target} was not written: the report advises no change of the schedule`;
  const note = `${found.cure}: predicted to save ${shareText(found.saves!)} of the measured step of ${secondsText(step.median)}`;
  writeJob(file, target, found.change, note);
  return `${target}: ${note}`;
};

/** Implements `skein-profile run`: runs a job for some steps, and reports how the step time is spent. */
export const runCommand = async (
  file: string,
  { steps, warmUp, output, hardware, apply, json = false, ...jobOptions }: RunCommandOptions,
): Promise<number> => {
  const [counted, warmUpSteps] = [countOf("steps", steps, 1), countOf("warm-up", warmUp, 0)];
  if (apply !== undefined) requireNewJob(file, apply);
  const job = await openJob(file, jobOptions);
  const { facts } = job;
  const folder = claimFolder(facts.name, output);
  const report = (line: string): void => {
    if (!json) writeStderr(`${line}\n`);
  };
  report(
    `${facts.name}: ${warmUpSteps} warm-up steps and ${counted} measured steps, on ${facts.ranks} ${facts.ranks === 1 ? "rank" : "ranks"} (${facts.backend}, ${facts.transport})`,
  );
  const abort = new AbortController();
  let stoppedCode: number = exitCodes.interrupted;
  const release = onInterrupt((cause) => {
    stoppedCode = exitCodeOfSignal(cause);
    report("stopping after this step; the report covers the steps made so far");
    abort.abort();
  }, report);
  try {
    const described = hardware === undefined ? undefined : hardwareOf(hardware);
    const device = described?.device ?? (await deviceHere(job));
    const prediction = described && (await predictStep(job, described));
    const measured = await measureJob(job, { steps: counted, warmUpSteps, signal: abort.signal });
    if (measured.steps.length === 0 && abort.signal.aborted) {
      dropUnused(folder);
      report("stopped before the first measured step; no report was written");
      return stoppedCode;
    }
    const measuredReport = buildReport({
      facts,
      measured,
      priced: {
        step: measured.step,
        stateBytes: facts.stateBytes,
        program: prediction?.program ?? measured.programOn(device),
        device,
      },
      warmUpSteps,
      madeAt: new Date(),
      machine: describeMachine(),
      predicted: prediction && { ranks: prediction.simulated.ranks, stepSeconds: prediction.simulated.stepSeconds },
    });
    const schedule =
      isExposed(measuredReport) && !abort.signal.aborted ? await bestSchedule(job, measured, device) : undefined;
    const advised =
      schedule === undefined ? measuredReport : { ...measuredReport, advice: adviceOn(measuredReport, schedule) };
    if (apply !== undefined) report(applyAdvice(file, apply, advised));
    writeReport(folder, advised, measured, { json, columns: process.stdout.columns });
    return abort.signal.aborted ? stoppedCode : exitCodes.ok;
  } catch (error) {
    dropUnused(folder);
    const isStop = error instanceof Error && error.name === "AbortError";
    if (abort.signal.aborted && (isStop || describeError(error).code === "interrupted")) {
      report("stopped before the first step");
      return stoppedCode;
    }
    throw error;
  } finally {
    release();
  }
};
