import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { type RankSpans, SkeinError } from "@skein/tensor-core";
import { discardPartial, hasCheckpoint, newestCheckpoint } from "../checkpoint/checkpoint.ts";
import { writeChromeTrace } from "../run-files/chrome-trace.ts";
import { describeError, explainDiskFull, TraceError } from "../errors.ts";
import { nodeFiles, replaceDurably } from "../files/files.ts";
import type { Interruption } from "../processes/interruption.ts";
import { resumedAt } from "../preparation/prepare.ts";
import { RunRecord, type RunRecordInput } from "./run-record.ts";
import type { Job } from "../job/job.ts";
import type { Assignment } from "../rank/messages.ts";
import { summaryFile } from "../output-folder/output-folder.ts";
import { endsEarly } from "../evaluation/best-so-far.ts";
import { resumeLine } from "../console/own-command.ts";
import type { ExchangePlan } from "../plans/exchange-plan.ts";
import { leaveMark, removeMark, removeMarks } from "../run-files/output-mark.ts";
import type { RankRunner } from "./rank-runner.ts";
import { RestartBudget } from "../processes/restart-budget.ts";
import type { Summary } from "../run-files/summary.ts";
import { nameTraceBesideRun } from "../run-files/trace-beside-run.ts";
import { openSamplesFile } from "../samples/samples-file.ts";

export interface RunInput extends Omit<RunRecordInput, "cutShort"> {
  /** Where the ranks run. */
  readonly runner: RankRunner;
  /**
   * How often a run that lost a rank, a link or a device goes on by itself without a newer checkpoint than before.
   * Default: 3.
   */
  readonly maxRestarts?: number | undefined;
  /** File for a Chrome trace of the first steps. */
  readonly tracePath?: string | undefined;
  /**
   * Only the steps are wanted, to look at their time: nothing is evaluated or saved, and the spans of all of them go
   * there once they are done.
   */
  readonly profile?: ((ranks: readonly RankSpans[], plan: ExchangePlan | undefined) => void) | undefined;
  /** Of so many steps one is recorded in detail, and the others as a span each. Default: 1. */
  readonly detailEvery?: number | undefined;
  readonly interruption: Interruption;
}

/** What became of a run. */
export interface Outcome {
  readonly step: number;
  /** Absent where the run was stopped before its end. */
  readonly summary?: Summary;
  /** The newest checkpoint. */
  readonly checkpoint: string | undefined;
  /** Why there is no trace, although one was asked for; all else is as it should be. */
  readonly traceFault?: SkeinError;
}

/** A trace file holds the first steps of a run: enough to see where time goes, small enough to open. */
const stepsOfTrace = 20;

/** Failures of machines and links, after which the same job may well succeed. */
const restartable: ReadonlySet<string> = new Set([
  "device-lost",
  "peer-lost",
  "collective-timeout",
  "rank-failed",
  "process-lost",
]);

/** Whether a run ended because another process has taken its output folder, where nothing more may be written. */
export const isTaken = (error: unknown): boolean => describeError(error).code === "output-taken";

/**
 * Run a prepared job. On failure nothing of an unfinished checkpoint is left behind. A run that lost a rank, a link or
 * a device goes on from the newest checkpoint, or from the beginning where there is none yet.
 *
 * @throws the failure that brought the run down, which names its rank.
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
        if (resumable) progress.note(`to go on from the newest checkpoint: ${resumeLine(output)}`);
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
  // A restart may resume from a checkpoint of another batch.
  const input = { ...given, prepared: resumedAt(given.prepared, given.resume?.manifest) };
  const { prepared, output, resume, tracePath, profile, detailEvery = 1 } = input;
  const { samples: shown } = prepared.job.evaluation;
  const samples =
    shown === undefined
      ? undefined
      : await openSamplesFile(output, resume?.manifest.step ?? 0, prepared.job, prepared.data, shown);
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
    plan: resume?.manifest.plan,
    totalSteps: prepared.totalSteps,
    stepOffset: prepared.stepOffset,
    ...(tracedSteps > 0 && {
      trace: { originMilliseconds: performance.timeOrigin + performance.now(), steps: tracedSteps, detailEvery },
    }),
    ...(profile !== undefined && { stepsOnly: true }),
  };
  discardPartial(nodeFiles, output); // what a killed run left
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
    const traceFault = tracePath === undefined ? undefined : keepTrace(tracePath, record, prepared.job);
    if (tracePath !== undefined && traceFault === undefined && profile === undefined)
      nameTraceBesideRun(tracePath, output);
    return {
      step: record.step,
      checkpoint: record.checkpoint,
      ...(summary && { summary }),
      ...(traceFault && { traceFault }),
    };
  } catch (error) {
    if (isTaken(error)) throw error; // all there is another's
    discardPartial(nodeFiles, output);
    if (mark !== undefined) removeMark(nodeFiles, output, mark);
    throw explainDiskFull(error, output, record.checkpoint);
  }
};

/** What a run was cut short by, with where it goes on once that is mended. */
const afterSaving = (fault: SkeinError, { step, checkpoint }: RunRecord, output: string): SkeinError => {
  const saved = `the state after step ${step} is saved; once that is mended, go on with: ${resumeLine(output)}`;
  return checkpoint === undefined
    ? fault
    : new SkeinError(fault.kind, fault.code, `${fault.message}; ${saved}`, { cause: fault });
};

/**
 * Write the trace. A disk that has become full meanwhile costs the trace, and not the results.
 *
 * @returns why it is not there.
 */
const keepTrace = (
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
    // half of one cannot be opened
    if (statSync(path, { throwIfNoEntry: false })?.isFile() === true) rmSync(path, { force: true });
    return new TraceError(path, error);
  }
};
