import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { commandAction } from "../command-line/command-action.ts";
import { loadJob } from "../job-file/config.ts";
import { Interruption } from "../processes/interruption.ts";
import { discoverRank } from "../members/rank-discovery.ts";
import { ConfigError, describeError, exitCodes, OutcomeError } from "../errors.ts";
import { nodeFiles, replaceDurably } from "../files/files.ts";
import { exitCodeOfSignal, onInterrupt, type StopCause } from "../processes/interrupts.ts";
import type { Job } from "../job/job.ts";
import { jobFile, savedJob } from "../output-folder/output-folder.ts";
import { sampleJob } from "../console/own-command.ts";
import { requireReplaceable } from "../files/places.ts";
import { makeProgress, type Progress } from "../run-files/progress.ts";
import { overridesOf, type RunOptions } from "../command-line/run-options.ts";
import { batchTable, chosenLine } from "./batch-lines.ts";
import type { BatchTry } from "./choose-batch.ts";
import { batchOverride, findBatch, type FoundBatch } from "./find-batch.ts";
import { memoryOption } from "./memory-bound.ts";
import { writeStderr, writeStdout } from "../console/terminal.ts";

/** A search that came to its end, or what stopped it. */
type Sought = { readonly found: FoundBatch; readonly chosen: BatchTry } | { readonly cause: StopCause };

/** @throws OutcomeError where no batch can be trained with. */
const seek = async (file: string, options: RunOptions, progress: Progress): Promise<Sought> => {
  if ((discoverRank(process.env)?.worldSize ?? 1) > 1)
    throw new ConfigError([
      "a batch is sought by one process, which starts the ranks itself, but a launcher has started this one as one of several; call skein-train find-batch once, and put what it says into the job",
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
      `no batch can be trained with: ${last === undefined ? "there are fewer samples than ranks and parts of a batch" : `a batch of ${last.batch} is refused: ${last.refused!}`}; give more (--memory), compute again what is not kept (memory: {recompute: blocks}), or use a smaller model or fewer ranks`,
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

/** `skein-train find-batch`. @returns the exit code. @throws OutcomeError where no batch can be trained with. */
export const findBatchCommand = async (file: string, options: FindBatchCommandOptions): Promise<number> => {
  if (options.output !== undefined) requireReplaceable(options.output, "--output");
  const { output, ...jobOptions } = options;
  const progress = makeProgress({ stream: process.stderr, quiet: options.quiet === true });
  const sought = await seek(file, jobOptions, progress).finally(() => progress.close());
  if ("cause" in sought) return stopped(sought.cause);
  const { found, chosen } = sought;
  const { job, bound, tries } = found;
  const said = JSON.stringify({ job: job.name, batch: chosen.batch, maxBytes: bound.bytes, tries });
  if (output !== undefined) replaceDurably(nodeFiles, output, `${said}\n`);
  const lines =
    options.json === true
      ? [said]
      : [...batchTable(found), "", `suggested  --set batch=${chosen.batch}`, `derived    ${chosenLine(found, chosen)}`];
  for (const line of lines) writeStdout(`${line}\n`);
  return exitCodes.ok;
};

/**
 * The job of `run --find-batch`: with the batch that was found, which its folder keeps as a number. A run that has
 * begun keeps its own.
 *
 * @returns the exit code instead where a person stopped the search.
 */
export const jobOfFoundBatch = async (file: string, options: RunOptions): Promise<Job | number> => {
  if (options.dryRun === true)
    throw new ConfigError(["--dry-run makes no step, but --find-batch has to; use skein-train find-batch"]);
  const progress = makeProgress({ stream: process.stderr, quiet: options.quiet === true });
  const withBatch = (batch: number): Promise<Job> =>
    loadJob(file, [...overridesOf(options), batchOverride(batch, "--find-batch")]);
  try {
    const { output, resumeIfPossible } = options;
    if (resumeIfPossible === true && output !== undefined && existsSync(join(output, jobFile))) {
      const { batch } = await savedJob(output, []);
      progress.note(`batch ${batch}, with which the run in ${output} has begun`);
      return await withBatch(batch);
    }
    const sought = await seek(file, options, progress);
    if ("cause" in sought) return stopped(sought.cause);
    progress.note(chosenLine(sought.found, sought.chosen));
    return await withBatch(sought.chosen.batch);
  } finally {
    progress.close();
  }
};

/** What `--memory` says of both commands. */
export const memoryHelp =
  "what all ranks of this machine may hold together, such as 2GiB; default, on the CPU: 0.8 of what is free";

/** Add `skein-train find-batch`. @param finish takes the exit code. @param withOverrides adds options of a job. */
export const addFindBatchCommand = (
  program: Command,
  finish: (code: number) => void,
  withOverrides: (command: Command) => Command,
): void => {
  withOverrides(
    program
      .command("find-batch")
      .description("suggest a batch: plan steps and make some, of twice the batch each time, while a sample takes less")
      .argument("<job>", "job file")
      .option("--memory <bytes>", memoryHelp)
      .option("--output <file>", "write the tries there, as JSON"),
  )
    .addHelpText("after", `\nExample:\n  skein-train find-batch ${sampleJob()}`)
    .action(commandAction(finish, findBatchCommand));
};
