import { join } from "node:path";
import {
  ConfigError,
  describeError,
  exitCodeOf,
  exitCodes,
  formatError,
  writeStderr,
  writeStdout,
} from "@skein/cli/node";
import type { Job } from "@skein/job/node";
import { evaluatedBy } from "@skein/run-files/node";
import { discoverRank } from "../members/rank-discovery.ts";
import { localRunner } from "../controller/local-runner.ts";
import { dryRun } from "../dry-run/dry-run-command.ts";
import { execute } from "./execute-run.ts";
import type { RunOptions } from "../command-line/run-options.ts";
import { outcomeTable, type TableRow } from "../sweep/sweep-lines.ts";

/** Requires that all options can be used with several jobs. @throws ConfigError. */
const requireForSeveral = (jobs: readonly Job[], { trace, watch }: RunOptions): void => {
  const names = jobs.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined)
    throw new ConfigError([
      `name: two of the ${jobs.length} jobs of the file have the name ${twice}, but each needs its own folder; give each a different name`,
    ]);
  const many = `the file holds ${jobs.length} jobs`;
  if (typeof trace === "string")
    throw new ConfigError([
      `--trace ${trace}: a trace file is for one run, but ${many}; leave the file of --trace out, then each run writes a trace into its folder`,
    ]);
  if (watch === true)
    throw new ConfigError([
      `--watch: the page shows one run, but ${many}; call skein-train watch in another terminal, which shows all runs`,
    ]);
  if ((discoverRank(process.env)?.worldSize ?? 1) > 1)
    throw new ConfigError([
      `a launcher started this process as one of several, but ${many}; put each job into its own file, and launch each file`,
    ]);
};

const waiting: Pick<TableRow, "values" | "state"> = { values: {}, state: "not begun" };

/**
 * Runs the jobs of a file one after another, each in a separate folder: `<output>/<name>` if an output folder is given.
 * If a job fails, the failure is reported, and the remaining jobs run. If the user stops a job, the remaining jobs do
 * not run.
 *
 * @returns the exit code of the first failed job, or the code of the stop signal.
 * @throws ConfigError before any job runs, if an option cannot be used with several jobs.
 */
export const runSeveral = async (jobs: readonly Job[], options: RunOptions): Promise<number> => {
  requireForSeveral(jobs, options);
  const rows = new Map<string, TableRow>(jobs.map(({ name }) => [name, { name, ...waiting }]));
  let code: number = exitCodes.ok;
  for (const job of jobs) {
    const { name } = job;
    const own = { ...options, ...(options.output !== undefined && { output: join(options.output, name) }) };
    const beganAt = performance.now();
    const ended = (row: Omit<TableRow, "name" | "values">): void =>
      void rows.set(name, { name, values: {}, ...row, seconds: (performance.now() - beganAt) / 1000 });
    try {
      if (options.dryRun === true) {
        if (options.json !== true) writeStdout(`${name}\n`);
        await dryRun(job, own);
        continue;
      }
      const start = options.resumeIfPossible === true ? "from checkpoint if possible" : "anew";
      const done = await execute({ job, runner: localRunner(job), output: own.output, start, beganAt }, own, name);
      if (done.summary === undefined) {
        ended({ state: "stopped" });
        if (done.code === exitCodes.ok) continue; // stopped by a callback of the job
        code = done.code;
        break;
      }
      const { loss, accuracy } = evaluatedBy(done.summary);
      ended({ state: "finished", loss: loss ?? undefined, accuracy });
    } catch (error) {
      const report = describeError(error);
      if (code === exitCodes.ok) code = exitCodeOf(report);
      ended({ state: "failed", reason: report.message });
      const { code: what, message } = report;
      if (options.json === true) writeStdout(`${JSON.stringify({ job: name, error: { code: what, message } })}\n`);
      writeStderr(`${name}: ${formatError(report)}\n`);
    }
  }
  if (options.dryRun !== true && options.json !== true)
    for (const line of outcomeTable([...rows.values()], {
      heading: "job",
      width: process.stdout.columns ?? 200,
      lossOn: "held-out",
    }))
      writeStdout(`${line}\n`);
  return code;
};
