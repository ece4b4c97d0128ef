import {
  asTyped,
  describeError,
  exitCodeOfSignal,
  exitCodes,
  onInterrupt,
  resumeLine,
  type StopCause,
  writeStderr,
  writeStdout,
} from "@skein/cli/node";
import { formatSummary, makeProgress, type Summary } from "@skein/run-files/node";
import { watchBeside } from "@skein/watch/node";
import { Interruption } from "../processes/interruption.ts";
import { nextSteps } from "../command-line/next-steps.ts";
import { requireMemorized } from "../run/overfit.ts";
import { logTargetOf } from "../log/log-target.ts";
import { type JobRun, runJob } from "../run/run-job.ts";
import { restartsOf, type RunOptions } from "../command-line/run-options.ts";

/** Result of a run whose output has been printed. */
export interface Executed {
  /** Exit code of the process. */
  readonly code: number;
  /** Summary of the run. Absent: the run was stopped. */
  readonly summary?: Summary;
}

const print = (line: string): void => writeStdout(`${line}\n`);

/**
 * Runs a job to its end or to an interruption, and prints the results.
 *
 * @param oneOf name of the job if several jobs are run. With a name, suggestions for the next command are not printed.
 * @throws the error that ended the run.
 */
export const execute = async (
  run: Pick<JobRun, "job" | "runner" | "maxRestarts" | "output" | "start" | "beganAt">,
  options: RunOptions,
  oneOf?: string,
): Promise<Executed> => {
  const restarts = restartsOf(options);
  const log = logTargetOf(options.log, process.env);
  const progress = makeProgress({ stream: process.stderr, quiet: options.quiet === true });
  const interruption = new Interruption();
  let cause: StopCause | undefined;
  let release: (() => void) | undefined;
  const handleSignals = (): void => {
    release = onInterrupt(
      (signal) => {
        cause = signal;
        if (!interruption.endsAtOnce) progress.note("stopping after this step and saving a checkpoint");
        interruption.request();
      },
      (line) => progress.note(line),
    );
  };
  const watch = options.watch === true ? await watchBeside(run, (line) => progress.note(line)) : undefined;
  try {
    const { summary, step, checkpoint, traceFault, tracePath, output, prepared, endedItself } = await runJob({
      ...restarts,
      ...run,
      interruption,
      progress,
      tracePath: options.trace,
      log,
      onPrepared: handleSignals,
    });
    progress.close();
    if (summary !== undefined) {
      for (const line of options.json === true
        ? [JSON.stringify(oneOf === undefined ? summary : { job: oneOf, ...summary })]
        : formatSummary(summary))
        print(line);
      if (traceFault !== undefined) throw traceFault;
      if (prepared.job.data.judgeBy === "training") {
        const memorized = requireMemorized(output, summary);
        if (options.json !== true) print(memorized);
      } else if (options.json !== true && oneOf === undefined)
        for (const line of nextSteps(output, prepared.totalSteps, tracePath)) progress.note(line);
      return { code: exitCodes.ok, summary };
    }
    writeStderr(
      asTyped(
        `stopped after step ${step} of ${prepared.totalSteps}; saved ${checkpoint}; continue with: ${resumeLine(output)}\n`,
      ),
    );
    if (traceFault !== undefined) writeStderr(`${traceFault.message}\n`);
    return { code: endedItself && cause === undefined ? exitCodes.ok : exitCodeOfSignal(cause ?? "SIGTERM") };
  } catch (error) {
    const { code, message } = describeError(error);
    if (code !== "interrupted") throw error;
    writeStderr(`${message}\n`);
    return { code: exitCodeOfSignal(cause ?? "SIGTERM") };
  } finally {
    progress.close();
    release?.();
    await watch?.close();
  }
};
