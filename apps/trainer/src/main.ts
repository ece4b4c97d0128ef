#!/usr/bin/env node
import { Command, CommanderError } from "commander";
import { newestCheckpoint } from "./checkpoint.ts";
import { chooseBackend, surveyHardware } from "./choose-backend.ts";
import { loadJob, type Override, parseOverride } from "./config.ts";
import { diagnose, formatDiagnosis } from "./doctor.ts";
import { ConfigError, describeError, exitCodeOf, exitCodes, explainDiskFull, formatError } from "./errors.ts";
import { nodeFiles } from "./files.ts";
import { exitCodeOfSignal, onInterrupt, type StopCause } from "./interrupts.ts";
import type { Job } from "./job.ts";
import { jobJsonSchema } from "./job-schema.ts";
import { launch, type LaunchInput } from "./launch.ts";
import { MetricFiles } from "./metrics.ts";
import { claimOutput, dropUnusedOutput, saveJob, savedJob } from "./output-folder.ts";
import { checkResumable, prepare, type Prepared, withBackend } from "./prepare.ts";
import { makeProgress } from "./progress.ts";
import { StopSignal } from "./stop-signal.ts";
import { formatSummary } from "./summary.ts";

interface GlobalOptions {
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly color: boolean;
}

interface RunOptions extends GlobalOptions {
  readonly ranks?: string;
  readonly steps?: string;
  readonly set: readonly string[];
  readonly trace?: string;
  readonly output?: string;
  readonly maxRestarts?: string;
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** Values of options, as overrides of the job. What is no number stays a word, for the schema to refuse. */
const overridesOf = ({ ranks, steps, set }: RunOptions): Override[] => {
  const numeric = (key: string, text: string | undefined): Override[] =>
    text === undefined
      ? []
      : [{ path: [key], value: text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text), origin: `--${key} ${text}` }];
  return [...set.map(parseOverride), ...numeric("ranks", ranks), ...numeric("steps", steps)];
};

/** Run to the end or to an interruption. @returns the exit code. */
const execute = async (
  input: Omit<LaunchInput, "stop" | "progress" | "metrics">,
  options: RunOptions,
  notes: readonly string[],
): Promise<number> => {
  const progress = makeProgress({ stream: process.stderr, quiet: options.quiet === true });
  const stop = StopSignal.create();
  let cause: StopCause | undefined;
  const release = onInterrupt((signal) => {
    cause = signal;
    stop.request();
    progress.note("stopping after this step and saving; once more to exit at once");
  });
  let metrics: MetricFiles | undefined;
  try {
    for (const note of notes) progress.note(note);
    metrics = new MetricFiles(input.output, input.resume?.manifest.step ?? 0);
    const { summary, step, checkpoint } = await launch({ ...input, stop, progress, metrics });
    progress.close();
    if (summary !== undefined) {
      for (const line of options.json === true ? [JSON.stringify(summary)] : formatSummary(summary)) print(line);
      return exitCodes.ok;
    }
    process.stderr.write(
      `stopped after step ${step} of ${input.prepared.totalSteps}; saved ${checkpoint}; continue with: skein-train resume ${input.output}\n`,
    );
    return exitCodeOfSignal(cause ?? "SIGINT");
  } finally {
    progress.close();
    release();
    metrics?.close();
  }
};

/** Prepare a job and settle what it computes on. @returns what people are told about it, too. */
const prepareOn = async (job: Job): Promise<{ readonly prepared: Prepared; readonly notes: readonly string[] }> => {
  const prepared = prepare(job);
  if (job.backend !== "auto") return { prepared, notes: [] };
  const { backend, reason } = chooseBackend(prepared, await surveyHardware({ always: false }));
  return { prepared: withBackend(prepared, backend), notes: [`backend ${backend}: ${reason}`] };
};

const restartsOf = ({ maxRestarts }: RunOptions): { readonly maxRestarts?: number } => {
  if (maxRestarts === undefined) return {};
  if (!/^\d+$/.test(maxRestarts))
    throw new ConfigError([`--max-restarts ${maxRestarts}: must be a whole number from 0; use 3, or 0 to stop at the first loss`]);
  return { maxRestarts: Number(maxRestarts) };
};

const runCommand = async (file: string, options: RunOptions): Promise<number> => {
  const restarts = restartsOf(options);
  const { prepared, notes } = await prepareOn(loadJob(file, overridesOf(options)));
  const { job } = prepared;
  const claimed = claimOutput(job.name, options.output);
  const output = claimed.path;
  try {
    saveJob(output, job);
    return await execute({ prepared, output, tracePath: options.trace, ...restarts }, options, [
      ...prepared.remarks,
      ...notes,
      `${job.name}: ${prepared.totalSteps} steps on ${job.ranks} ${job.ranks === 1 ? "rank" : "ranks"}, output in ${output}`,
    ]);
  } catch (error) {
    dropUnusedOutput(claimed);
    throw explainDiskFull(error, output, undefined);
  }
};

const resumeCommand = async (output: string, options: RunOptions): Promise<number> => {
  const job = savedJob(output, overridesOf(options));
  const notes: string[] = [];
  const resume = newestCheckpoint(nodeFiles, output, (reason) => notes.push(`passed over a damaged checkpoint: ${reason}`));
  const restarts = restartsOf(options);
  const { prepared, notes: chosen } = await prepareOn(job);
  notes.push(
    ...chosen,
    ...prepared.remarks,
    ...checkResumable(prepared, resume),
    `${job.name}: going on from ${resume.folder}, step ${resume.manifest.step} of ${prepared.totalSteps}`,
  );
  return execute({ prepared, output, resume, tracePath: options.trace, ...restarts }, options, notes);
};

const validateCommand = (file: string, options: RunOptions): number => {
  const job = loadJob(file, overridesOf(options));
  print(options.json === true ? JSON.stringify({ valid: true, job }) : `${file}: valid`);
  return exitCodes.ok;
};

const doctorCommand = async (file: string | undefined, options: RunOptions): Promise<number> => {
  const prepared = file === undefined ? undefined : prepare(loadJob(file, overridesOf(options)));
  const diagnosis = diagnose(await surveyHardware({ always: true }), prepared);
  for (const line of options.json === true ? [JSON.stringify(diagnosis)] : formatDiagnosis(diagnosis)) print(line);
  return exitCodes.ok;
};

/** The command line. `finish` takes the exit code of the command that ran. */
const makeProgram = (finish: (code: number) => void): Command => {
  const collect = (value: string, list: readonly string[]): string[] => [...list, value];
  const program = new Command("skein-train")
    .description("Train models with Skein.")
    .option("--json", "print the result as one line of JSON")
    .option("--quiet", "no progress")
    .option("--no-color", "no colours")
    .showHelpAfterError("(add --help for the options)")
    .exitOverride()
    .hook("preAction", (_, action) => {
      if (!action.optsWithGlobals<GlobalOptions>().color) process.env["NO_COLOR"] = "1";
    });
  const withOverrides = (command: Command): Command =>
    command
      .option("--ranks <count>", "data-parallel ranks (threads)")
      .option("--steps <count>", "steps to train, instead of the job's epochs or steps")
      .option("--set <key=value>", "replace a value of the job; may be repeated", collect, []);
  const withTrace = (command: Command): Command =>
    command
      .option("--trace <file>", "write a Chrome trace of the first steps")
      .option("--max-restarts <count>", "how often to go on by itself when the GPU device is lost; default: 3");
  const does =
    <A extends string | undefined>(action: (argument: A, options: RunOptions) => number | Promise<number>) =>
    async (argument: A, _: unknown, command: Command) =>
      finish(await action(argument, command.optsWithGlobals<RunOptions>()));

  withTrace(
    withOverrides(
      program
        .command("run")
        .description("train as a job file says")
        .argument("<job>", "job file, YAML or JSON")
        .option("--output <folder>", "where results go; default: runs/<name>/<number>"),
    ),
  )
    .addHelpText("after", "\nExample:\n  skein-train run jobs/mnist.yaml --ranks 2 --set optimizer.kind=sgd")
    .action(does(runCommand));
  withTrace(
    withOverrides(
      program.command("resume").description("go on from the newest checkpoint of a run").argument("<folder>", "output folder of the run"),
    ),
  )
    .addHelpText("after", "\nExample:\n  skein-train resume runs/mnist/1")
    .action(does(resumeCommand));
  withOverrides(program.command("validate").description("check a job file").argument("<job>", "job file"))
    .addHelpText("after", "\nExample:\n  skein-train validate jobs/mnist.yaml")
    .action(does(validateCommand));
  withOverrides(
    program
      .command("doctor")
      .description("say what this machine computes on, how fast, and what backend: auto would choose")
      .argument("[job]", "job file"),
  )
    .addHelpText("after", "\nExample:\n  skein-train doctor jobs/mnist.yaml")
    .action(does(doctorCommand));
  program
    .command("schema")
    .description("print the JSON Schema of job files")
    .addHelpText("after", "\nExample:\n  skein-train schema > job.schema.json")
    .action(() => {
      print(JSON.stringify(jobJsonSchema(), undefined, 2));
      finish(exitCodes.ok);
    });
  return program;
};

const main = async (args: readonly string[]): Promise<number> => {
  let code: number = exitCodes.usage;
  try {
    await makeProgram((result) => {
      code = result;
    }).parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage; // commander has said why
    const report = describeError(error);
    process.stderr.write(`${formatError(report)}\n`);
    return exitCodeOf(report.kind);
  }
};

// A reader that has gone, such as `head`, is no failure of the run; its results are in the output folder.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

// A lone "--" is what `pnpm start -- --json` leaves in front of the options.
process.exitCode = await main(process.argv.slice(2).filter((argument) => argument !== "--"));
