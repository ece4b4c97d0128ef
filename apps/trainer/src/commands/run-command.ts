import { ConfigError, keepExitCode, writeStderr } from "@skein/cli/node";
import type { Job } from "@skein/job/node";
import { loadJobs, readJobs } from "../job-file/load-job.ts";
import { dryRun } from "../dry-run/dry-run-command.ts";
import { execute } from "./execute-run.ts";
import { launchedRunner, launchedPosition, runLaunchedProcess } from "../controller/launched-process.ts";
import { discoverRank } from "../members/rank-discovery.ts";
import { localRunner } from "../controller/local-runner.ts";
import { jobOfFoundBatch } from "../find-batch/find-batch-command.ts";
import { editedJobLine } from "../output-folder/edited-job.ts";
import { newestRun } from "../output-folder/newest-run.ts";
import { overfitJob } from "../run/overfit.ts";
import { savedJob } from "../output-folder/output-folder.ts";
import { overridesOf, type RunOptions } from "../command-line/run-options.ts";
import { announceCode } from "../command-line/announce-code.ts";
import { runSeveral } from "./run-several.ts";

/** Returns the jobs to run, or an exit code if the user stopped the search for the batch size. */
const jobsOf = async (file: string, options: RunOptions): Promise<readonly Job[] | number> => {
  if (options.findBatch === true && options.overfit !== undefined)
    throw new ConfigError([
      "--find-batch and --overfit: --overfit uses batches of the job's own size; use only one of both options",
    ]);
  if (options.overfit !== undefined) return [await overfitJob(file, options)];
  if (options.findBatch !== true) return loadJobs(file, overridesOf(options));
  const found = await jobOfFoundBatch(file, options);
  return typeof found === "number" ? found : [found];
};

/** Implements `skein-train run`. */
export const runCommand = async (file: string, options: RunOptions): Promise<number> => {
  if (options.findBatch !== true && options.memory !== undefined)
    throw new ConfigError(["--memory is the memory limit of --find-batch; give --find-batch, too, or neither of them"]);
  if (options.dryRun === true) announceCode(readJobs(file, overridesOf(options)), options);
  const jobs = await jobsOf(file, options);
  if (typeof jobs === "number") return jobs;
  if (jobs.length > 1) return runSeveral(jobs, options);
  const job = jobs[0]!;
  if (options.dryRun === true) return dryRun(job, options);
  const position = launchedPosition(job, process.env);
  if (position !== undefined) keepExitCode();
  if (position !== undefined && position.process > 0)
    return runLaunchedProcess(position, (line) => {
      if (options.quiet !== true) writeStderr(`${line}\n`);
    });
  // Only a launcher can restart the processes that it started.
  const where =
    position === undefined ? { runner: localRunner(job) } : { runner: launchedRunner(position), maxRestarts: 0 };
  const start = options.resumeIfPossible === true ? "from checkpoint if possible" : "anew";
  return (await execute({ job, ...where, output: options.output, start }, options)).code;
};

/** Implements `skein-train resume`. */
export const resumeCommand = async (folder: string, options: RunOptions): Promise<number> => {
  const output = await newestRun(folder);
  const job = await savedJob(output, overridesOf(options));
  if ((discoverRank(process.env)?.worldSize ?? 1) > 1)
    throw new ConfigError([
      "resume starts the processes of a run itself, but a launcher started this process as one of several; use run <job> --output <folder> --resume-if-possible",
    ]);
  const edited = editedJobLine(output);
  if (edited !== undefined && options.quiet !== true) writeStderr(`${edited}\n`);
  return (await execute({ job, runner: localRunner(job), output, start: "from checkpoint" }, options)).code;
};
