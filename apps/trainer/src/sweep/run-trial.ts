import { availableParallelism } from "node:os";
import type { Interruption } from "../processes/interruption.ts";
import { localRunner } from "../controller/local-runner.ts";
import { loadJob, type Override } from "../job-file/config.ts";
import { describeError } from "../errors.ts";
import { runJob } from "../run/run-job.ts";
import type { Progress } from "../run-files/progress.ts";
import { judgedBy } from "../run-files/summary.ts";
import type { Trial } from "./sweep-file.ts";

/** What became of a trial; undefined where it was stopped, and goes on another time. */
export type TrialEnd = Pick<Trial, "state" | "loss" | "accuracy" | "steps" | "seconds" | "reason"> | undefined;

const silent: Progress = { update: () => undefined, note: () => undefined, close: () => undefined };

/**
 * Failures that lie in what a trial sets: it counts as the worst, and others are tried. All else, such as a full disk,
 * ends the sweep.
 */
const ownFailures: ReadonlySet<string> = new Set([
  "non-finite",
  "config",
  "argument",
  "shape",
  "unsupported",
  "out-of-memory",
  "device-memory",
]);

/**
 * Run a trial in a folder of its own, or go on with it there.
 *
 * @param parallel how many run at once, among which the machine's cores are shared. Not a bit follows from it.
 * @throws what ends the whole sweep.
 */
export const runTrial = async (
  file: string,
  overrides: readonly Override[],
  {
    output,
    parallel,
    interruption,
  }: { readonly output: string; readonly parallel: number; readonly interruption: Interruption },
): Promise<TrialEnd> => {
  const began = performance.now();
  try {
    const loaded = await loadJob(file, overrides);
    const threads = loaded.threads ?? Math.max(1, Math.floor(availableParallelism() / (loaded.ranks * parallel)));
    const job = { ...loaded, threads };
    const { summary, step } = await runJob({
      job,
      runner: localRunner(job),
      interruption,
      progress: silent,
      output,
      start: "from checkpoint if possible",
    });
    if (summary === undefined) return undefined;
    const ran = { steps: step, seconds: (performance.now() - began) / 1000 };
    const { loss, ...others } = judgedBy(summary);
    if (loss === null || !Number.isFinite(loss))
      return { state: "failed", ...ran, reason: `the loss on the validation samples is ${loss ?? "not finite"}` };
    return {
      state: "finished",
      loss,
      ...others,
      ...ran,
    };
  } catch (error) {
    const { code, message } = describeError(error);
    if (code === "interrupted" || (interruption.requested && !ownFailures.has(code))) return undefined;
    if (!ownFailures.has(code)) throw error;
    return { state: "failed", seconds: (performance.now() - began) / 1000, reason: message };
  }
};
