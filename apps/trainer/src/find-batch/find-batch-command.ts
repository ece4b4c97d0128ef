import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  commandAction,
  ConfigError,
  describeError,
  exitCodeOfSignal,
  exitCodes,
  nodeFiles,
  onInterrupt,
  OutcomeError,
  replaceDurably,
  requireReplaceable,
  type StopCause,
  writeStderr,
  writeStdout,
} from "@skein/cli/node";
import type { Job } from "@skein/job/node";
import { makeProgress, type Progress } from "@skein/run-files/node";
import type { Command } from "commander";
import { loadJob } from "../job-file/load-job.ts";
import { Interruption } from "../processes/interruption.ts";
import { discoverRank } from "../members/rank-discovery.ts";
import { jobFile, savedJob } from "../output-folder/output-folder.ts";
import { sampleJob } from "../own-files.ts";
import { overridesOf, type RunOptions } from "../command-line/run-options.ts";
import { batchTable, chosenLine } from "./batch-lines.ts";
import type { BatchTrial } from "./choose-batch.ts";
import { batchOverride, findBatch, type FoundBatch } from "./find-batch.ts";
import { memoryOption } from "./memory-bound.ts";

/** Result of a finished search, or the signal that stopped the search. */
type SearchResult = { readonly found: FoundBatch; readonly chosen: BatchTrial } | { readonly cause: StopCause };

/** Searches for the batch size of a job. @throws OutcomeError if training fails with every batch size. */
const search = async (file: string, options: RunOptions, progress: Progress): Promise<SearchResult> => {
  if ((discoverRank(process.env)?.worldSize ?? 1) > 1)
    throw new ConfigError([
      "find-batch runs in one process, which starts the ranks itself, but a launcher started this process as one of several; call skein-train find-batch once, and put the result into the job",
    ]);
  const maxBytes = options.memory === undefined ? undefined : memoryOption(options.memory);
  const interruption = new Interruption();
  let cause: StopCause | undefined;
  const release = onInterrupt((signal) => {
    cause = signal;
    interruption.request();
  });
  try {
    const found = await findBatch({ file, overrides: overridesOf(options) }, { maxBytes, interruption, progress });
    if (found.chosen !== undefined) return { found, chosen: found.chosen };
    const last = found.tries.at(-1);
    throw new OutcomeError(
      "no-batch",
      `no batch can be trained with: ${last === undefined ? "there are fewer samples than parts of a batch on all ranks" : `a batch of ${last.batch} was rejected: ${last.refused!}`}; allow more memory (--memory), recompute activations (memory: {recompute: blocks}), or use a smaller model or fewer ranks`,
    );
  } catch (error) {
    if (cause !== undefined && describeError(error).code === "interrupted") return { cause };
    throw error;
  } finally {
    release();
  }
};

const stopped = (cause: StopCause): number => {
  writeStderr("stopped; no batch was chosen, and nothing was written\n");
  return exitCodeOfSignal(cause);
};

interface FindBatchCommandOptions extends RunOptions {
  readonly memory?: string;
}

/**
 * Implements `skein-train find-batch`.
 * @returns the exit code. @throws OutcomeError if training fails with every batch size.
 */
export const findBatchCommand = async (file: string, options: FindBatchCommandOptions): Promise<number> => {
  if (options.output !== undefined) requireReplaceable(options.output, "--output");
  const { output, ...jobOptions } = options;
  const progress = makeProgress({ stream: process.stderr, quiet: options.quiet === true });
  const result = await search(file, jobOptions, progress).finally(() => progress.close());
  if ("cause" in result) return stopped(result.cause);
  const { found, chosen } = result;
  const { job, bound, tries } = found;
  const json = JSON.stringify({ job: job.name, batch: chosen.batch, maxBytes: bound.bytes, tries });
  if (output !== undefined) replaceDurably(nodeFiles, output, `${json}\n`);
  const lines =
    options.json === true
      ? [json]
      : [...batchTable(found), "", `suggested  --set batch=${chosen.batch}`, `derived    ${chosenLine(found, chosen)}`];
  for (const line of lines) writeStdout(`${line}\n`);
  return exitCodes.ok;
};

/**
 * Searches for the batch size for `run --find-batch`, and returns the job with this batch size, which is then stored in
 * the run's folder. If the run in the folder was already started, returns the job with the run's batch size instead.
 *
 * @returns the job, or the exit code if the user stopped the search.
 */
export const jobOfFoundBatch = async (file: string, options: RunOptions): Promise<Job | number> => {
  if (options.dryRun === true)
    throw new ConfigError(["--dry-run runs no step, but --find-batch needs steps; use skein-train find-batch"]);
  const progress = makeProgress({ stream: process.stderr, quiet: options.quiet === true });
  const withBatch = (batch: number): Promise<Job> =>
    loadJob(file, [...overridesOf(options), batchOverride(batch, "--find-batch")]);
  try {
    const { output, resumeIfPossible } = options;
    if (resumeIfPossible === true && output !== undefined && existsSync(join(output, jobFile))) {
      const { batch } = await savedJob(output, []);
      progress.note(`batch ${batch}, as at the start of the run in ${output}`);
      return await withBatch(batch);
    }
    const result = await search(file, options, progress);
    if ("cause" in result) return stopped(result.cause);
    progress.note(chosenLine(result.found, result.chosen));
    return await withBatch(result.chosen.batch);
  } finally {
    progress.close();
  }
};

/** Help text of the option `--memory`. */
export const memoryHelp =
  "memory limit of all ranks of this machine together, such as 2GiB; default on the CPU: 0.8 of the free memory";

/**
 * Adds `skein-train find-batch` to the command line.
 * @param finish receives the exit code. @param withOverrides adds the options that override job settings.
 */
export const addFindBatchCommand = (
  program: Command,
  finish: (code: number) => void,
  withOverrides: (command: Command) => Command,
): void => {
  withOverrides(
    program
      .command("find-batch")
      .description("suggest a batch size: plan and run steps, doubling the batch while the time per sample decreases")
      .argument("<job>", "job file")
      .option("--memory <bytes>", memoryHelp)
      .option("--output <file>", "write the trials into this file, as JSON"),
  )
    .addHelpText("after", `\nExample:\n  skein-train find-batch ${sampleJob()}`)
    .action(commandAction(finish, findBatchCommand));
};
