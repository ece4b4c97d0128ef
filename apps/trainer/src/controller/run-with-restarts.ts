import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { discardPartial, hasCheckpoint, newestCheckpoint } from "@skein/checkpoints/node";
import {
  describeError,
  explainDiskFull,
  nodeFiles,
  replaceDurably,
  RestartBudget,
  resumeLine,
  TraceError,
} from "@skein/cli/node";
import type { Job } from "@skein/job/node";
import {
  leaveMark,
  linkTraceIntoRun,
  removeMark,
  removeMarks,
  type Summary,
  writeChromeTrace,
} from "@skein/run-files/node";
import { endsEarly, type ExchangePlan, savedPlan } from "@skein/step/node";
import { type RankSpans, SkeinError } from "@skein/tensor-core";
import type { Interruption } from "../processes/interruption.ts";
import { resumedAt } from "../preparation/resume.ts";
import { RunRecord, type RunRecordInput } from "./run-record.ts";
import type { Assignment } from "../rank/messages.ts";
import { summaryFile } from "../output-folder/output-folder.ts";
import type { RankRunner } from "./rank-runner.ts";
import { openSamplesFile } from "../samples/samples-file.ts";

export interface RunInput extends Omit<RunRecordInput, "cutShort"> {
  readonly runner: RankRunner;
  /**
   * Maximum number of automatic restarts without a newer checkpoint in between. The run restarts after the loss of a
   * rank, a link or a device. Default: 3.
   */
  readonly maxRestarts?: number | undefined;
  /** Path for a Chrome trace of the first steps. Absent: no trace file. */
  readonly tracePath?: string | undefined;
  /**
   * Receives the spans of all steps at the end of the run. If present, the run only measures steps: nothing is
   * evaluated or saved.
   */
  readonly profile?: ((ranks: readonly RankSpans[], plan: ExchangePlan | undefined) => void) | undefined;
  /**
   * Interval, in steps, between steps that are recorded in detail. All other steps are recorded as a single span.
   * Default: 1.
   */
  readonly detailEvery?: number | undefined;
  readonly interruption: Interruption;
}

/** Outcome of a run. */
export interface Outcome {
  readonly step: number;
  /** Summary of the run. Absent: the run was stopped before its end. */
  readonly summary?: Summary;
  /** Path of the newest checkpoint. Undefined: no checkpoint was saved. */
  readonly checkpoint: string | undefined;
  /** Error that prevented a requested trace from being written. All other results are complete. Absent: no error. */
  readonly traceFault?: SkeinError;
}

/**
 * Number of steps that a trace file contains, starting with the first step: enough steps to see where time is spent,
 * but few enough that trace viewers can open the file.
 */
const stepsOfTrace = 20;

/** Error codes of machine and link failures, after which the same job may succeed. */
const restartable: ReadonlySet<string> = new Set([
  "device-lost",
  "peer-lost",
  "collective-timeout",
  "rank-failed",
  "process-lost",
]);

/**
 * Whether a run ended because another process took over its output folder. If so, the run must not write to the folder.
 */
export const isOutputTaken = (error: unknown): boolean => describeError(error).code === "output-taken";

/**
 * Runs a prepared job. After a failure, no unfinished checkpoint remains. A run that lost a rank, a link or a device
 * continues from the newest checkpoint, or from the beginning if there is no checkpoint.
 *
 * @throws the error that ended the run. The error names the failed rank.
 */
export const runWithRestarts = async (input: RunInput): Promise<Outcome> => {
  const { output, progress, metrics, maxRestarts = 3 } = input;
  const budget = new RestartBudget(maxRestarts, input.resume?.manifest.step ?? 0);
  let attempt = input;
  for (;;) {
    try {
      return await runOnce(attempt);
    } catch (error) {
      const { code, message } = describeError(error);
      if (!restartable.has(code) || input.interruption.requested) throw error;
      const resumable = hasCheckpoint(nodeFiles, output);
      const resume =
        resumable && maxRestarts > 0
          ? newestCheckpoint(
              nodeFiles,
              output,
              (reason) => progress.note(`passed over a damaged checkpoint: ${reason}`),
              input.checkpointSecret,
            )
          : undefined;
      const restarts = budget.spend(resume?.manifest.step ?? 0);
      if (restarts === undefined) {
        if (resumable) progress.note(`to continue from the newest checkpoint: ${resumeLine(output)}`);
        throw error;
      }
      metrics.rewind(resume?.manifest.step ?? 0);
      progress.note(
        `${message.split(";")[0]}; going on from ${resume?.folder ?? "the beginning"} (restart ${restarts} of ${maxRestarts})`,
      );
      attempt = { ...input, resume };
    }
  }
};

const runOnce = async (given: RunInput): Promise<Outcome> => {
  // A restart may resume from a checkpoint with a different batch size.
  const input = { ...given, prepared: resumedAt(given.prepared, given.resume?.manifest) };
  const { prepared, output, resume, tracePath, profile, detailEvery = 1 } = input;
  const { samples: numSamples } = prepared.job.evaluation;
  const samples =
    numSamples === undefined
      ? undefined
      : await openSamplesFile(output, resume?.manifest.step ?? 0, prepared.job, prepared.data, numSamples);
  const record = new RunRecord({ ...input, samples, cutShort: () => input.interruption.request() });
  const tracedSteps = profile !== undefined ? prepared.totalSteps : tracePath !== undefined ? stepsOfTrace : 0;
  const assignment: Omit<Assignment, "mark"> = {
    task: "train",
    job: prepared.job,
    output,
    resume: resume && {
      folder: resume.folder,
      step: resume.manifest.step,
      files: resume.manifest.files,
      best: record.best,
      ...("lanes" in resume.manifest.data && { lanes: resume.manifest.data.lanes }),
    },
    plan: resume && savedPlan(resume),
    totalSteps: prepared.totalSteps,
    stepOffset: prepared.stepOffset,
    ...(tracedSteps > 0 && {
      trace: { originMilliseconds: performance.timeOrigin + performance.now(), steps: tracedSteps, detailEvery },
    }),
    ...(profile !== undefined && { stepsOnly: true }),
  };
  discardPartial(nodeFiles, output); // files left by a killed run
  let mark: string | undefined;
  try {
    mark = leaveMark(nodeFiles, output);
    await input.runner.run({
      prepared,
      interruption: input.interruption,
      assignment: { ...assignment, mark },
      record,
      note: (line) => input.progress.note(line),
    });
    removeMarks(nodeFiles, output);
    if (record.fault !== undefined) throw afterSaving(record.fault, record, output);
    const isOver = record.step >= prepared.totalSteps || endsEarly(prepared.job, record.best);
    const finished = isOver && record.evaluation !== undefined;
    const summary = finished ? record.summary() : undefined;
    if (summary !== undefined)
      replaceDurably(nodeFiles, join(output, summaryFile), `${JSON.stringify(summary, undefined, 2)}\n`);
    profile?.(record.traces, record.plan);
    const traceFault = tracePath === undefined ? undefined : writeTrace(tracePath, record, prepared.job);
    if (tracePath !== undefined && traceFault === undefined && profile === undefined)
      linkTraceIntoRun(tracePath, output);
    return {
      step: record.step,
      checkpoint: record.checkpoint,
      ...(summary && { summary }),
      ...(traceFault && { traceFault }),
    };
  } catch (error) {
    if (isOutputTaken(error)) throw error; // the folder belongs to another process now
    discardPartial(nodeFiles, output);
    if (mark !== undefined) removeMark(nodeFiles, output, mark);
    throw explainDiskFull(error, output, record.checkpoint);
  }
};

/** Adds the command that continues the run to the error that ended the run early. */
const afterSaving = (fault: SkeinError, { step, checkpoint }: RunRecord, output: string): SkeinError => {
  const saved = `the state after step ${step} is saved; after fixing the cause, continue with: ${resumeLine(output)}`;
  return checkpoint === undefined
    ? fault
    : new SkeinError(fault.kind, fault.code, `${fault.message}; ${saved}`, { cause: fault });
};

/**
 * Writes the trace. A full disk does not affect the other results of the run.
 *
 * @returns the error if the trace was not written, otherwise undefined.
 */
const writeTrace = (
  path: string,
  { traces, plan }: RunRecord,
  { name, backend, batch }: Job,
): SkeinError | undefined => {
  try {
    writeChromeTrace(path, traces, {
      job: name,
      backend,
      samplesPerStep: batch,
      madeAt: new Date().toISOString(),
      plan,
    });
    return undefined;
  } catch (error) {
    // a partial trace cannot be opened
    if (statSync(path, { throwIfNoEntry: false })?.isFile() === true) rmSync(path, { force: true });
    return new TraceError(path, error);
  }
};
