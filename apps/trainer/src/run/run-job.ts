import { join } from "node:path";
import { discardPartial, hasCheckpoint, newestCheckpoint } from "../checkpoint/checkpoint.ts";
import { checkpointSecret } from "../checkpoint/checkpoint-manifest.ts";
import { chooseBackend, surveyHardware } from "../preparation/choose-backend.ts";
import { openJobBlas } from "../backend/job-blas.ts";
import { threadsOf } from "../backend/job-threads.ts";
import { describeError, explainDiskFull, RunError } from "../errors.ts";
import { resumeLine } from "../console/own-command.ts";
import { nodeFiles } from "../files/files.ts";
import { isTaken, type RunInput, type Outcome, runWithRestarts } from "../controller/run-with-restarts.ts";
import { takeRequest } from "../run-files/histogram-request.ts";
import type { Job } from "../job/job.ts";
import { isPlanned } from "../plans/exchange-plan.ts";
import type { LogTarget } from "../log/log-target.ts";
import { MlflowLog } from "../log/mlflow-log.ts";
import { memoryLine, stepMemoryOf } from "../preparation/step-memory.ts";
import { preferenceOf } from "../members/network-world.ts";
import { MetricFiles } from "../run-files/metrics.ts";
import { traceFile } from "../run-files/trace-beside-run.ts";
import {
  claimOutput,
  dropUnusedOutput,
  reclaimOutput,
  requireNoRun,
  requireOutput,
  saveJob,
} from "../output-folder/output-folder.ts";
import { CallbackQueue } from "../modules/callbacks.ts";
import { holdOutput } from "../run-files/hold-output.ts";
import { requireWritable } from "../files/places.ts";
import { type Ended, Provenance } from "../provenance/provenance.ts";
import type { EndEvent, RunEvent } from "../run-files/run-events.ts";
import { checkResumable, type Given, prepare, type Prepared, resumedAt, withBackend } from "../preparation/prepare.ts";

/** A job to run, and where. */
export interface JobRun
  extends Pick<
    RunInput,
    "runner" | "interruption" | "progress" | "beganAt" | "maxRestarts" | "profile" | "detailEvery" | "happened"
  > {
  readonly job: Job;
  /** What a program gave in place of names. */
  readonly given?: Given | undefined;
  /** The folder asked for. Default: `runs/<name>/<number>`. */
  readonly output?: string | undefined;
  /** Begin anew, go on from the newest checkpoint in `output`, or do so where there is one. */
  readonly start: "anew" | "from checkpoint" | "from checkpoint if possible";
  /** File for a Chrome trace of the first steps; true: `trace.json` in the output folder. Default: none. */
  readonly tracePath?: string | true | undefined;
  /** Where metrics go beside the folder. Default: nowhere. */
  readonly log?: LogTarget | undefined;
  /** Called once all is read and checked: from here on a stop is a matter of the ranks, who save first. */
  readonly onPrepared?: (() => void) | undefined;
}

/** What became of a run, and where it lies. */
export interface JobOutcome extends Outcome {
  readonly output: string;
  readonly prepared: Prepared;
  /** Whether callbacks of the job stopped it. */
  readonly endedItself: boolean;
  /** Where a trace was to be written. */
  readonly tracePath: string | undefined;
}

/** A prepared job, and what people are told about it. */
interface Noted {
  readonly prepared: Prepared;
  readonly notes: readonly string[];
}

/** Settle what a job computes on. */
const settleBackend = async ({ job, given }: Pick<JobRun, "job" | "given">): Promise<Noted> => {
  const prepared = await prepare(job, given);
  preferenceOf(job); // a link file that cannot be read is told before any process starts
  const blas = openJobBlas(job); // one that cannot be used any more is told once and at once
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

/**
 * Prepare a job, and choose here what it computes again: a bound that cannot be met is told once, before ranks start.
 */
export const prepareOn = async (run: Pick<JobRun, "job" | "given">): Promise<Noted> => {
  const { prepared, notes } = await settleBackend(run);
  const { job } = prepared;
  // A device knows its own plan, and buckets that are measured are not known yet: ranks see to those bounds.
  if (job.memory.recompute !== "auto" || job.backend !== "cpu" || isPlanned(job)) return { prepared, notes };
  return { prepared, notes: [...notes, memoryLine(await stepMemoryOf(prepared))] };
};

const tracePathOf = ({ tracePath }: Pick<JobRun, "tracePath">, output: string): string | undefined =>
  tracePath === true ? join(output, traceFile) : tracePath;

/** Look at what a run will write before it trains. @throws ConfigError. */
const requirePlaces = (output: string, tracePath: string | undefined): void => {
  requireOutput(output);
  if (tracePath !== undefined) requireWritable(tracePath, "--trace");
};

interface FolderRun extends Omit<RunInput, "metrics"> {
  readonly callbacks: CallbackQueue | undefined;
  readonly log?: LogTarget | undefined;
}

/** Run in a folder that is there, metrics beside it. */
const runIn = async ({ callbacks, log: target, happened: tell, ...input }: FolderRun): Promise<JobOutcome> => {
  const { output, prepared, resume } = input;
  const firstStep = resume?.manifest.step ?? 0;
  takeRequest(output); // before provenance says that a run is there, which may be asked
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
  const provenance = input.profile === undefined ? new Provenance(output, prepared.totalSteps) : undefined;
  let last: Pick<EndEvent, "step" | "checkpoint"> = { step: firstStep, checkpoint: resume?.folder };
  const happened = (event: RunEvent): void => {
    if (event.type === "step") last = { ...last, step: event.step };
    if (event.type === "checkpoint") last = { ...last, checkpoint: event.folder };
    callbacks?.take(event);
    tell?.(event);
  };
  const end = async (ended: Ended): Promise<void> => {
    const fault = await provenance?.end(ended);
    takeRequest(output);
    if (fault !== undefined) input.progress.note(fault);
    await log?.end(ended.how);
    happened({ type: "end", ...last, ...ended });
    const leftOut = await callbacks?.done(last.checkpoint, (line) => input.progress.note(line));
    if (leftOut !== undefined) input.progress.note(leftOut);
  };
  try {
    happened({ type: "start", output, step: firstStep, totalSteps: prepared.totalSteps });
    const outcome = await runWithRestarts({ ...input, metrics, happened }).catch(async (error: unknown) => {
      if (isTaken(error)) throw error;
      const { code, message } = describeError(error);
      await end({ how: code === "interrupted" ? "stopped" : "failed", reason: message }).catch((fault: unknown) => {
        if (code === "interrupted") throw fault; // it is what stopped the run
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

/** Callbacks of a run that is no measurement. */
const callbacksOf = async ({
  job: { callbacks },
  given,
  interruption,
  profile,
}: JobRun): Promise<CallbackQueue | undefined> =>
  callbacks === undefined || profile !== undefined
    ? undefined
    : CallbackQueue.load(callbacks, interruption, given?.callbacks);

/** Hold the output folder of a run. @returns a function that lets it go. */
const hold = ({ progress, interruption }: JobRun, output: string): Promise<() => void> =>
  holdOutput(output, {
    what: "a run",
    note: (line) => progress.note(line),
    isStopped: () => interruption.requested,
    onTaken: (error) => interruption.abandon(error),
  });

/** Look at a folder once more: whoever held it until now may have used it. @throws ConfigError, RunError. */
const requireUnused = (start: JobRun["start"], output: string): void => {
  if (start === "anew") return requireNoRun(output);
  if (hasCheckpoint(nodeFiles, output))
    throw new RunError(
      "output-in-use",
      `${output}: another run has saved a checkpoint there while this one waited; go on from it with ${resumeLine(output)}`,
    );
};

/** Begin a run, in an output folder of its own. */
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
    requirePlaces(output, tracePath);
    saveJob(output, prepared.job);
    for (const note of [...prepared.remarks, ...notes]) progress.note(note);
    progress.note(
      `${job.name}: ${prepared.totalSteps} steps on ${job.ranks} ${job.ranks === 1 ? "rank" : "ranks"}, output in ${output}`,
    );
    return await runIn({ ...run, callbacks, tracePath, prepared, output, checkpointSecret });
  } catch (error) {
    if (isTaken(error)) throw error;
    dropUnusedOutput(claimed);
    throw explainDiskFull(error, output, undefined);
  } finally {
    release();
  }
};

/** Go on from the newest sound checkpoint in `output`. */
const goOn = async (run: JobRun, output: string, checkpointSecret: string | undefined): Promise<JobOutcome> => {
  const { job, progress } = run;
  const skipped: string[] = [];
  discardPartial(nodeFiles, output); // what a killed run left; its checkpoints get their names back
  const resume = newestCheckpoint(
    nodeFiles,
    output,
    (reason) => skipped.push(`passed over a damaged checkpoint: ${reason}`),
    checkpointSecret,
  );
  const { prepared: whole, notes } = await prepareOn(run);
  const prepared = resumedAt(whole, resume.manifest);
  const callbacks = await callbacksOf(run);
  run.onPrepared?.();
  for (const note of [...skipped, ...notes, ...prepared.remarks, ...checkResumable(prepared, resume)])
    progress.note(note);
  progress.note(`${job.name}: going on from ${resume.folder}, step ${resume.manifest.step} of ${prepared.totalSteps}`);
  const tracePath = tracePathOf(run, output);
  requirePlaces(output, tracePath);
  try {
    saveJob(output, prepared.job); // what was asked for now holds for the next resume, too
    return await runIn({ ...run, callbacks, tracePath, prepared, output, resume, checkpointSecret });
  } catch (error) {
    throw explainDiskFull(error, output, resume.folder);
  }
};

/**
 * Run a job to its end, or until it is interrupted.
 *
 * @throws what brought it down. A run that failed before its first step leaves no folder behind.
 */
export const runJob = async (run: JobRun): Promise<JobOutcome> => {
  const { output, start } = run;
  const secret = checkpointSecret(process.env);
  const goesOn =
    start === "from checkpoint" || (start !== "anew" && output !== undefined && hasCheckpoint(nodeFiles, output));
  if (!goesOn) return begin(run, secret);
  const release = await hold(run, output!);
  try {
    return await goOn(run, output!, secret);
  } finally {
    release();
  }
};
