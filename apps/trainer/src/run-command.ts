import { loadJob } from "./config.ts";
import { dryRun } from "./dry-run/dry-run-command.ts";
import { ConfigError, describeError, exitCodes } from "./errors.ts";
import { Interruption } from "./controller/interruption.ts";
import { exitCodeOfSignal, onInterrupt, type StopCause } from "./interrupts.ts";
import { launchedRunner, launchedPlace, takeLaunchedPart } from "./controller/launched-process.ts";
import { discoverRank } from "./controller/rank-discovery.ts";
import { localRunner } from "./controller/local-runner.ts";
import { newestRun } from "./newest-run.ts";
import { nextSteps } from "./next-steps.ts";
import { overfitJob, requireLearnt } from "./overfit.ts";
import { asTyped, resumeLine } from "./own-command.ts";
import { savedJob } from "./output-folder.ts";
import { makeProgress } from "./progress.ts";
import { type JobRun, runJob } from "./run-job.ts";
import { overridesOf, restartsOf, type RunOptions } from "./run-options.ts";
import { formatSummary } from "./summary.ts";
import { watchBeside } from "./watch/watch-command.ts";

const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** Run to the end or to an interruption, and tell people. @returns the exit code. */
const execute = async (
  run: Pick<JobRun, "job" | "runner" | "maxRestarts" | "output" | "start">,
  options: RunOptions,
): Promise<number> => {
  const restarts = restartsOf(options);
  const progress = makeProgress({ stream: process.stderr, quiet: options.quiet === true });
  const interruption = new Interruption();
  let cause: StopCause | undefined;
  let release: (() => void) | undefined;
  const heedSignals = (): void => {
    release = onInterrupt((signal) => {
      cause = signal;
      if (!interruption.endsAtOnce) progress.note("stopping after this step and saving; once more to exit at once");
      interruption.request();
    });
  };
  const watch = options.watch === true ? await watchBeside(run, (line) => progress.note(line)) : undefined;
  try {
    const { summary, step, checkpoint, traceFault, tracePath, output, prepared } = await runJob({
      ...restarts,
      ...run,
      interruption,
      progress,
      tracePath: options.trace,
      onPrepared: heedSignals,
    });
    progress.close();
    if (summary !== undefined) {
      for (const line of options.json === true ? [JSON.stringify(summary)] : formatSummary(summary)) print(line);
      if (traceFault !== undefined) throw traceFault;
      if (prepared.job.data.judgeBy === "training") {
        const learnt = requireLearnt(output, summary);
        if (options.json !== true) print(learnt);
      } else if (options.json !== true)
        for (const line of nextSteps(output, prepared.totalSteps, tracePath)) progress.note(line);
      return exitCodes.ok;
    }
    process.stderr.write(
      asTyped(
        `stopped after step ${step} of ${prepared.totalSteps}; saved ${checkpoint}; continue with: ${resumeLine(output)}\n`,
      ),
    );
    if (traceFault !== undefined) process.stderr.write(`${traceFault.message}\n`);
    return exitCodeOfSignal(cause ?? "SIGTERM");
  } catch (error) {
    const { code, message } = describeError(error);
    if (code !== "interrupted") throw error;
    process.stderr.write(`${message}\n`);
    return exitCodeOfSignal(cause ?? "SIGTERM");
  } finally {
    progress.close();
    release?.();
    await watch?.close();
  }
};

/** `skein-train run`. */
export const runCommand = async (file: string, options: RunOptions): Promise<number> => {
  const job =
    options.overfit === undefined ? await loadJob(file, overridesOf(options)) : await overfitJob(file, options);
  if (options.dryRun === true) return dryRun(job, options);
  const place = launchedPlace(job, process.env);
  if (place !== undefined && place.process > 0)
    return takeLaunchedPart(place, (line) => {
      if (options.quiet !== true) process.stderr.write(`${line}\n`);
    });
  // Who started the processes of a run must start them again.
  const where = place === undefined ? { runner: localRunner(job) } : { runner: launchedRunner(place), maxRestarts: 0 };
  const start = options.resumeIfPossible === true ? "from checkpoint if possible" : "anew";
  return execute({ job, ...where, output: options.output, start }, options);
};

/** `skein-train resume`. */
export const resumeCommand = async (folder: string, options: RunOptions): Promise<number> => {
  const output = await newestRun(folder);
  const job = await savedJob(output, overridesOf(options));
  if ((discoverRank(process.env)?.worldSize ?? 1) > 1)
    throw new ConfigError([
      "resume starts the processes of a run itself, but a launcher has started this one as one of several; use run <job> --output <folder> --resume-if-possible",
    ]);
  return execute({ job, runner: localRunner(job), output, start: "from checkpoint" }, options);
};
