import { checkpointSecret, discardPartial, hasCheckpoint, newestCheckpoint } from "@skein/checkpoints/node";
import { describeError, explainDiskFull, nodeFiles, requireWritable, resumeLine, RunError } from "@skein/cli/node";
import type { Job } from "@skein/job/node";
import {
  type Ended,
  type EndEvent,
  holdOutput,
  MetricFiles,
  Provenance,
  type RunEvent,
  takeRequest,
  traceFile,
} from "@skein/run-files/node";
import { isPlanned } from "@skein/step/node";
import packageJson from "../../package.json" with { type: "json" };
import { join } from "node:path";
import { chooseBackend, surveyHardware } from "../preparation/choose-backend.ts";
import { openJobBlas } from "../backend/job-blas.ts";
import { threadsOf } from "../backend/job-threads.ts";
import { isOutputTaken, type RunInput, type Outcome, runWithRestarts } from "../controller/run-with-restarts.ts";
import type { LogTarget } from "../log/log-target.ts";
import { MlflowLog } from "../log/mlflow-log.ts";
import { memoryLine, stepMemoryOf } from "../preparation/step-memory.ts";
import { preferenceOf } from "../members/network-world.ts";
import {
  claimOutput,
  dropUnusedOutput,
  reclaimOutput,
  requireNoRun,
  requireOutput,
  saveJob,
} from "../output-folder/output-folder.ts";
import { CallbackQueue } from "../modules/callbacks.ts";
import { checkResumable, resumedAt } from "../preparation/resume.ts";
import type { Given, Prepared } from "../preparation/prepared.ts";
import { prepare, withBackend } from "../preparation/prepare.ts";

/** A job to run, with options for its inputs and outputs. */
export interface JobRun
  extends Pick<
    RunInput,
    "runner" | "interruption" | "progress" | "beganAt" | "maxRestarts" | "profile" | "detailEvery" | "happened"
  > {
  readonly job: Job;
  /** Objects that a program passed instead of names. */
  readonly given?: Given | undefined;
  /** Requested output folder. Default: `runs/<name>/<number>`. */
  readonly output?: string | undefined;
  /**
   * Whether to begin a new run, to resume from the newest checkpoint in `output`, or to resume only if a checkpoint
   * exists.
   */
  readonly start: "anew" | "from checkpoint" | "from checkpoint if possible";
  /** File for a Chrome trace of the first steps; true: `trace.json` in the output folder. Default: no trace. */
  readonly tracePath?: string | true | undefined;
  /** Destination for metrics in addition to the output folder. Default: none. */
  readonly log?: LogTarget | undefined;
  /**
   * Called after all inputs are read and checked. Later stop requests are handled by the ranks, which save before they
   * stop.
   */
  readonly onPrepared?: (() => void) | undefined;
}

/** Result of a run, with its output folder. */
export interface JobOutcome extends Outcome {
  readonly output: string;
  readonly prepared: Prepared;
  /** Whether callbacks of the job stopped the run. */
  readonly endedItself: boolean;
  /** Path of the trace. Absent: no trace was requested. */
  readonly tracePath: string | undefined;
}

/** A prepared job, with notes for the user. */
interface Noted {
  readonly prepared: Prepared;
  readonly notes: readonly string[];
}

/** Prepares a job and chooses its backend. */
const settleBackend = async ({ job, given }: Pick<JobRun, "job" | "given">): Promise<Noted> => {
  const prepared = await prepare(job, given);
  preferenceOf(job); // an unreadable link file must be reported before any process starts
  const blas = openJobBlas(job); // an unusable BLAS must be reported once, before any rank starts
  const threads = threadsOf(job);
  const onCpu = [
    ...(threads === 1 ? [] : [`${threads} threads per rank`]),
    ...(blas === undefined ? [] : [`products by ${blas.identity}`]),
  ];
  if (job.backend !== "auto") return { prepared, notes: job.backend === "cpu" ? onCpu : [] };
  const { backend, reason } = chooseBackend(prepared, await surveyHardware({ always: false, blas, threads }));
  return {
    prepared: withBackend(prepared, backend),
    notes: [`backend ${backend}: ${reason}`, ...(backend === "cpu" ? onCpu : [])],
  };
};

/** Prepares a job and checks its memory limit, so that a limit that is too low is reported once, before ranks start. */
export const prepareOn = async (run: Pick<JobRun, "job" | "given">): Promise<Noted> => {
  const { prepared, notes } = await settleBackend(run);
  const { job } = prepared;
  // Ranks check the limit if only the device can compute the memory plan, or if buckets are planned from measurements.
  if (job.memory.recompute !== "auto" || job.backend !== "cpu" || isPlanned(job)) return { prepared, notes };
  return { prepared, notes: [...notes, memoryLine(await stepMemoryOf(prepared))] };
};

const tracePathOf = ({ tracePath }: Pick<JobRun, "tracePath">, output: string): string | undefined =>
  tracePath === true ? join(output, traceFile) : tracePath;

/** Checks the output paths of a run before training. @throws ConfigError. */
const requireOutputPaths = (output: string, tracePath: string | undefined): void => {
  requireOutput(output);
  if (tracePath !== undefined) requireWritable(tracePath, "--trace");
};

interface FolderRun extends Omit<RunInput, "metrics"> {
  readonly callbacks: CallbackQueue | undefined;
  readonly log?: LogTarget | undefined;
}

/** Runs a job in an existing folder, and writes metrics there. */
const runIn = async ({ callbacks, log: target, happened: onEvent, ...input }: FolderRun): Promise<JobOutcome> => {
  const { output, prepared, resume } = input;
  const firstStep = resume?.manifest.step ?? 0;
  takeRequest(output); // before provenance announces the run, because histogram requests may arrive from then on
  const log =
    target &&
    new MlflowLog({
      ...target,
      output,
      firstStep,
      job: prepared.job,
      note: (line) => input.progress.note(line),
    });
  const metrics = new MetricFiles(output, firstStep, log);
  const provenance =
    input.profile === undefined ? new Provenance(output, prepared.totalSteps, packageJson.version) : undefined;
  let last: Pick<EndEvent, "step" | "checkpoint"> = { step: firstStep, checkpoint: resume?.folder };
  const happened = (event: RunEvent): void => {
    if (event.type === "step") last = { ...last, step: event.step };
    if (event.type === "checkpoint") last = { ...last, checkpoint: event.folder };
    callbacks?.take(event);
    onEvent?.(event);
  };
  const end = async (ended: Ended): Promise<void> => {
    const fault = await provenance?.end(ended);
    takeRequest(output);
    if (fault !== undefined) input.progress.note(fault);
    await log?.end(ended.how);
    happened({ type: "end", ...last, ...ended });
    const skippedCalls = await callbacks?.done(last.checkpoint, (line) => input.progress.note(line));
    if (skippedCalls !== undefined) input.progress.note(skippedCalls);
  };
  try {
    happened({ type: "start", output, step: firstStep, totalSteps: prepared.totalSteps });
    const outcome = await runWithRestarts({ ...input, metrics, happened }).catch(async (error: unknown) => {
      if (isOutputTaken(error)) throw error;
      const { code, message } = describeError(error);
      await end({ how: code === "interrupted" ? "stopped" : "failed", reason: message }).catch((fault: unknown) => {
        if (code === "interrupted") throw fault; // the run was stopped by this error
        input.progress.note(describeError(fault).message);
      });
      throw error;
    });
    await end({ how: outcome.summary === undefined ? "stopped" : "finished" });
    return {
      ...outcome,
      output,
      prepared,
      endedItself: callbacks?.hasStopped ?? false,
      tracePath: input.tracePath,
    };
  } finally {
    metrics.close();
  }
};

/** Loads the callbacks of a run. Undefined: the run has no callbacks, or is only a measurement. */
const callbacksOf = async ({
  job: { callbacks },
  given,
  interruption,
  profile,
}: JobRun): Promise<CallbackQueue | undefined> =>
  callbacks === undefined || profile !== undefined
    ? undefined
    : CallbackQueue.load(callbacks, interruption, given?.callbacks);

/** Locks the output folder of a run. @returns a function that releases the folder. */
const hold = ({ progress, interruption }: JobRun, output: string): Promise<() => void> =>
  holdOutput(output, {
    what: "a run",
    note: (line) => progress.note(line),
    isStopped: () => interruption.requested,
    onTaken: (error) => interruption.abandon(error),
  });

/**
 * Checks a folder again after locking, because the previous holder of the lock may have written to it. @throws
 * ConfigError, RunError.
 */
const requireUnused = (start: JobRun["start"], output: string): void => {
  if (start === "anew") return requireNoRun(output);
  if (hasCheckpoint(nodeFiles, output))
    throw new RunError(
      "output-in-use",
      `${output}: another run has saved a checkpoint there while this run waited; continue from it with ${resumeLine(output)}`,
    );
};

/** Starts a new run in a new output folder. */
const begin = async (run: JobRun, checkpointSecret: string | undefined): Promise<JobOutcome> => {
  const { job, progress } = run;
  const { prepared, notes } = await prepareOn(run);
  const callbacks = await callbacksOf(run);
  run.onPrepared?.();
  const claimed = run.start === "anew" ? claimOutput(job.name, run.output) : reclaimOutput(job.name, run.output);
  const output = claimed.path;
  const tracePath = tracePathOf(run, output);
  const release = await hold(run, output);
  try {
    requireUnused(run.start, output);
  } catch (error) {
    release();
    throw error;
  }
  try {
    requireOutputPaths(output, tracePath);
    saveJob(output, prepared.job);
    for (const note of [...prepared.remarks, ...notes]) progress.note(note);
    progress.note(
      `${job.name}: ${prepared.totalSteps} steps on ${job.ranks} ${job.ranks === 1 ? "rank" : "ranks"}, output in ${output}`,
    );
    return await runIn({ ...run, callbacks, tracePath, prepared, output, checkpointSecret });
  } catch (error) {
    if (isOutputTaken(error)) throw error;
    dropUnusedOutput(claimed);
    throw explainDiskFull(error, output, undefined);
  } finally {
    release();
  }
};

/** Resumes a run from the newest valid checkpoint in `output`. */
const resumeRun = async (run: JobRun, output: string, checkpointSecret: string | undefined): Promise<JobOutcome> => {
  const { job, progress } = run;
  const skipped: string[] = [];
  discardPartial(nodeFiles, output); // removes partial checkpoints of a killed run, and restores replaced checkpoints
  const resume = newestCheckpoint(
    nodeFiles,
    output,
    (reason) => skipped.push(`skipped a damaged checkpoint: ${reason}`),
    checkpointSecret,
  );
  const { prepared: whole, notes } = await prepareOn(run);
  const prepared = resumedAt(whole, resume.manifest);
  const callbacks = await callbacksOf(run);
  run.onPrepared?.();
  for (const note of [...skipped, ...notes, ...prepared.remarks, ...checkResumable(prepared, resume)])
    progress.note(note);
  progress.note(`${job.name}: resuming from ${resume.folder}, step ${resume.manifest.step} of ${prepared.totalSteps}`);
  const tracePath = tracePathOf(run, output);
  requireOutputPaths(output, tracePath);
  try {
    saveJob(output, prepared.job); // the current overrides also apply to the next resume
    return await runIn({ ...run, callbacks, tracePath, prepared, output, resume, checkpointSecret });
  } catch (error) {
    throw explainDiskFull(error, output, resume.folder);
  }
};

/**
 * Runs a job until it ends or is interrupted.
 *
 * @throws the error that ended the run. If a run fails before its first step, its output folder is removed.
 */
export const runJob = async (run: JobRun): Promise<JobOutcome> => {
  const { output, start } = run;
  const secret = checkpointSecret(process.env);
  const resumes =
    start === "from checkpoint" || (start !== "anew" && output !== undefined && hasCheckpoint(nodeFiles, output));
  if (!resumes) return begin(run, secret);
  const release = await hold(run, output!);
  try {
    return await resumeRun(run, output!, secret);
  } finally {
    release();
  }
};
