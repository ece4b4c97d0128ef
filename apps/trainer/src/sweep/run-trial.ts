import { availableParallelism } from "node:os";
import { describeError } from "@skein/cli/node";
import type { Override } from "@skein/job/node";
import { evaluatedBy, type Progress } from "@skein/run-files/node";
import type { Interruption } from "../processes/interruption.ts";
import { localRunner } from "../controller/local-runner.ts";
import { loadJob } from "../job-file/load-job.ts";
import { runJob } from "../run/run-job.ts";
import type { Trial } from "./sweep-file.ts";

/** Result of a trial. Undefined: the trial was stopped, and can be resumed. */
export type TrialEnd = Pick<Trial, "state" | "loss" | "accuracy" | "steps" | "seconds" | "reason"> | undefined;

const silent: Progress = { update: () => undefined, note: () => undefined, close: () => undefined };

/**
 * Codes of errors that can be caused by the values of a trial. A trial with such an error counts as the worst trial,
 * and other trials continue. Any other error, such as a full disk, ends the sweep.
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
 * Runs or resumes a trial in the trial's folder.
 *
 * @param parallel Number of concurrent trials, which share the CPU cores. Does not affect results.
 * @throws errors that end the complete sweep.
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
    const { loss, ...others } = evaluatedBy(summary);
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
