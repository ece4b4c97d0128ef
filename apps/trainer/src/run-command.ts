import { newestCheckpoint, hasCheckpoint } from "./checkpoint.ts";
import { checkpointSecret } from "./checkpoint-manifest.ts";
import { chooseBackend, surveyHardware } from "./choose-backend.ts";
import { loadJob } from "./config.ts";
import { ConfigError, describeError, exitCodes, explainDiskFull } from "./errors.ts";
import { nodeFiles } from "./files.ts";
import { Interruption } from "./hosts/interruption.ts";
import { exitCodeOfSignal, onInterrupt, type StopCause } from "./interrupts.ts";
import type { Job } from "./job.ts";
import { launch, type LaunchInput } from "./hosts/launch.ts";
import { launchedHost, launchedPlace, takeLaunchedPart } from "./hosts/launched-process.ts";
import { discoverRank } from "./hosts/rank-discovery.ts";
import { preferenceOf } from "./members/network-world.ts";
import { localHost } from "./hosts/local-host.ts";
import { MetricFiles } from "./metrics.ts";
import { claimOutput, dropUnusedOutput, reclaimOutput, saveJob, savedJob } from "./output-folder.ts";
import { checkResumable, prepare, type Prepared, withBackend } from "./prepare.ts";
import { makeProgress } from "./progress.ts";
import { overridesOf, restartsOf, type RunOptions } from "./run-options.ts";
import { formatSummary } from "./summary.ts";

const print = (line: string): void => void process.stdout.write(`${line}\n`);

type Run = Omit<LaunchInput, "interruption" | "progress" | "metrics">;

/** Run to the end or to an interruption. @returns the exit code. */
const execute = async (input: Run, options: RunOptions, notes: readonly string[]): Promise<number> => {
  const progress = makeProgress({ stream: process.stderr, quiet: options.quiet === true });
  const interruption = new Interruption();
  let cause: StopCause | undefined;
  const release = onInterrupt((signal) => {
    cause = signal;
    interruption.request();
    progress.note("stopping after this step and saving; once more to exit at once");
  });
  let metrics: MetricFiles | undefined;
  try {
    for (const note of notes) progress.note(note);
    metrics = new MetricFiles(input.output, input.resume?.manifest.step ?? 0);
    const { summary, step, checkpoint } = await launch({ ...input, interruption, progress, metrics });
    progress.close();
    if (summary !== undefined) {
      for (const line of options.json === true ? [JSON.stringify(summary)] : formatSummary(summary)) print(line);
      return exitCodes.ok;
    }
    process.stderr.write(
      `stopped after step ${step} of ${input.prepared.totalSteps}; saved ${checkpoint}; continue with: skein-train resume ${input.output}\n`,
    );
    return exitCodeOfSignal(cause ?? "SIGTERM");
  } catch (error) {
    const { code, message } = describeError(error);
    if (code !== "interrupted") throw error;
    process.stderr.write(`${message}\n`);
    return exitCodeOfSignal(cause ?? "SIGTERM");
  } finally {
    progress.close();
    release();
    metrics?.close();
  }
};

/** Prepare a job and settle what it computes on. @returns what people are told about it, too. */
const prepareOn = async (job: Job): Promise<{ readonly prepared: Prepared; readonly notes: readonly string[] }> => {
  const prepared = await prepare(job);
  preferenceOf(job); // a link file that cannot be read is told before any process starts
  if (job.backend !== "auto") return { prepared, notes: [] };
  const { backend, reason } = chooseBackend(prepared, await surveyHardware({ always: false }));
  return { prepared: withBackend(prepared, backend), notes: [`backend ${backend}: ${reason}`] };
};

/** Begin a run, in an output folder of its own. */
const begin = async (job: Job, options: RunOptions, where: Where): Promise<number> => {
  const restarts = restartsOf(options);
  const secret = checkpointSecret(process.env);
  const { prepared, notes } = await prepareOn(job);
  const claimed = options.resumeIfPossible === true ? reclaimOutput(job.name, options.output) : claimOutput(job.name, options.output);
  const output = claimed.path;
  try {
    saveJob(output, prepared.job);
    return await execute({ prepared, output, checkpointSecret: secret, tracePath: options.trace, ...restarts, ...where }, options, [
      ...prepared.remarks,
      ...notes,
      `${job.name}: ${prepared.totalSteps} steps on ${job.ranks} ${job.ranks === 1 ? "rank" : "ranks"}, output in ${output}`,
    ]);
  } catch (error) {
    dropUnusedOutput(claimed);
    throw explainDiskFull(error, output, undefined);
  }
};

/** Go on from the newest sound checkpoint in `output`. */
const goOn = async (job: Job, output: string, options: RunOptions, where: Where): Promise<number> => {
  const notes: string[] = [];
  const secret = checkpointSecret(process.env);
  const resume = newestCheckpoint(nodeFiles, output, (reason) => notes.push(`passed over a damaged checkpoint: ${reason}`), secret);
  const restarts = restartsOf(options);
  const { prepared, notes: chosen } = await prepareOn(job);
  notes.push(
    ...chosen,
    ...prepared.remarks,
    ...checkResumable(prepared, resume),
    `${job.name}: going on from ${resume.folder}, step ${resume.manifest.step} of ${prepared.totalSteps}`,
  );
  return execute({ prepared, output, resume, checkpointSecret: secret, tracePath: options.trace, ...restarts, ...where }, options, notes);
};

/** Where ranks run, and how often a run may be restarted from here. */
type Where = Pick<LaunchInput, "host" | "maxRestarts">;

/** `skein-train run`. */
export const runCommand = async (file: string, options: RunOptions): Promise<number> => {
  const job = await loadJob(file, overridesOf(options));
  const place = launchedPlace(job, process.env);
  if (place !== undefined && place.process > 0) return takeLaunchedPart(place);
  // Who started the processes of a run must start them again.
  const where: Where = place === undefined ? { host: localHost(job) } : { host: launchedHost(place), maxRestarts: 0 };
  const { output } = options;
  const goesOn = options.resumeIfPossible === true && output !== undefined && hasCheckpoint(nodeFiles, output);
  return goesOn ? goOn(job, output, options, where) : begin(job, options, where);
};

/** `skein-train resume`. */
export const resumeCommand = async (output: string, options: RunOptions): Promise<number> => {
  const job = await savedJob(output, overridesOf(options));
  if ((discoverRank(process.env)?.worldSize ?? 1) > 1)
    throw new ConfigError([
      "resume starts the processes of a run itself, but a launcher has started this one as one of several; use run <job> --output <folder> --resume-if-possible",
    ]);
  return goOn(job, output, options, { host: localHost(job) });
};
