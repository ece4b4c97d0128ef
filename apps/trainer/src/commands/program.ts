import { surveyBlas } from "@skein/blas/node";
import { asTyped, commandAction, exitCodes, type GlobalOptions, writeStdout } from "@skein/cli/node";
import { jobJsonSchema } from "@skein/job/node";
import { addCertsCommand } from "@skein/launch/node";
import { addRunsCommand, addWatchCommand } from "@skein/watch/node";
import { Command, Option } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { addBlasCommand } from "./blas-command.ts";
import { openJobBlas } from "../backend/job-blas.ts";
import { threadsOf } from "../backend/job-threads.ts";
import { surveyHardware } from "../preparation/choose-backend.ts";
import { loadJob, loadJobs, readJobs } from "../job-file/load-job.ts";
import { addEvaluateCommand } from "./evaluate-command.ts";
import { addExportCommand } from "../export/export-command.ts";
import { addGenerateCommand } from "../generate/generate-command.ts";
import { foreignWord } from "../command-line/foreign-words.ts";
import { diagnose, formatDiagnosis } from "../dry-run/doctor.ts";
import { linksCommand } from "../links/links-command.ts";
import { addLogCommand } from "../log/log-command.ts";
import { addMemberCommand } from "./member-command.ts";
import { addLaunchCommand } from "./launch-command.ts";
import { addMpiCommand } from "../members/mpi-command.ts";
import { addFindBatchCommand, memoryHelp } from "../find-batch/find-batch-command.ts";
import { addFindRateCommand } from "../find-rate/find-rate-command.ts";
import { sampleJob } from "../own-files.ts";
import { prepare } from "../preparation/prepare.ts";
import { addImportCommand } from "../import-model/import-command.ts";
import { reportCommand } from "../report/report-command.ts";
import { noModulesVariable } from "../modules/load-module.ts";
import { resumeCommand, runCommand } from "./run-command.ts";
import { announceCode } from "../command-line/announce-code.ts";
import { addSweepCommand } from "../sweep/sweep-command.ts";
import { addTokenizerCommand } from "./tokenizer-command.ts";
import { overridesOf, type RunOptions } from "../command-line/run-options.ts";
import { visibleText } from "@skein/tensor-core/backend";

const print = (line: string): void => writeStdout(`${line}\n`);

const validateCommand = async (file: string, options: RunOptions): Promise<number> => {
  announceCode(readJobs(file, overridesOf(options)), options);
  const jobs = await loadJobs(file, overridesOf(options));
  if (options.json === true) for (const job of jobs) print(JSON.stringify({ valid: true, job }));
  else print(`${file}: valid${jobs.length === 1 ? "" : `, ${jobs.length} jobs`}`);
  return exitCodes.ok;
};

const doctorCommand = async (file: string | undefined, options: RunOptions): Promise<number> => {
  if (file !== undefined) announceCode(readJobs(file, overridesOf(options)), options);
  const prepared = file === undefined ? undefined : await prepare(await loadJob(file, overridesOf(options)));
  const blas = surveyBlas();
  // If the BLAS is broken, its fault is reported, and the rates are measured without the BLAS.
  const job = prepared?.job ?? { blas: "auto", ranks: 1 };
  const hardware = await surveyHardware({
    always: true,
    blas: blas.state === "ready" ? openJobBlas(job) : undefined,
    threads: threadsOf(job),
  });
  const diagnosis = await diagnose(hardware, blas, prepared);
  for (const line of options.json === true ? [JSON.stringify(diagnosis)] : formatDiagnosis(diagnosis)) print(line);
  return exitCodes.ok;
};

/** Creates the command line. `finish` receives the exit code of the executed command. */
export const makeProgram = (finish: (code: number) => void): Command => {
  const collect = (value: string, list: readonly string[]): string[] => [...list, value];
  const program = new Command("skein-train")
    .description("Train models with Skein.")
    .option("--json", "print the result as one line of JSON")
    .option("--quiet", "print no progress")
    .option("--no-color", "print no colors")
    .option("--no-modules", "reject jobs that name modules, which are code, before any module is loaded")
    .version(packageJson.version, "--version", "print the version")
    .showHelpAfterError("(add --help for the options)")
    // Examples contain the command as the user typed it, so that the examples can be pasted. Columns before the command
    // keep their layout.
    .configureOutput({
      outputError: (text, write) => {
        const suggestion = foreignWord(text);
        write(visibleText(suggestion === undefined ? text : `${text.trimEnd()}; ${asTyped(suggestion)}\n`));
      },
      writeOut: (text) => writeStdout(text.replaceAll(/^ {2}skein-train .*$/gm, (line) => asTyped(line))),
    })
    .exitOverride()
    .hook("preAction", (_, action) => {
      const { color, modules } = action.optsWithGlobals<GlobalOptions>();
      if (!color) process.env["NO_COLOR"] = "1";
      if (modules === false) process.env[noModulesVariable] = "1";
    });
  const withOverrides = (command: Command): Command =>
    command
      .option("--ranks <count>", "number of ranks")
      .option("--transport <name>", "how ranks communicate: threads, tcp, tls or mpi")
      .option("--certificates <folder>", "folder of skein-train certs init, for --transport tls")
      .option("--insecure", "allow connections to other machines without TLS")
      .option("--steps <count>", "steps to train, instead of the job's epochs or steps")
      .addOption(
        new Option("--set <key=value>", "replace a value of the job; may be repeated")
          .argParser(collect)
          .default([], "none"),
      );
  const withTrace = (command: Command): Command =>
    command
      .option("--trace [file]", "write a Chrome trace of the first steps; default file: trace.json in the run's folder")
      .option(
        "--log <server>",
        "also send metrics to a server: mlflow (the server of MLFLOW_TRACKING_URI); TensorBoard files are always written",
      )
      .option("--watch", "serve a page that shows the run while it trains, as skein-train watch does")
      .option(
        "--max-restarts <count>",
        "maximum number of automatic restarts without a newer checkpoint, after the loss of a rank, a link or the GPU device; default: 3",
      );
  withTrace(
    withOverrides(
      program
        .command("run")
        .description("train the job of a job file, or its jobs one after another")
        .argument("<job>", "job file, YAML or JSON")
        .option("--output <folder>", "output folder; default: runs/<name>/<number>")
        .option("--resume-if-possible", "continue from the newest checkpoint in --output, if there is one")
        .option("--overfit <batches>", "train on this many batches only, and report whether the model memorizes them")
        .option("--find-batch", "before training, choose the batch size as find-batch does")
        .option("--memory <bytes>", `for --find-batch: ${memoryHelp}`)
        .option(
          "--dry-run",
          "train nothing and write nothing; print predictions for the run: memory, bytes sent, time",
        ),
    ),
  )
    .addHelpText("after", `\nExample:\n  skein-train run ${sampleJob()} --ranks 2 --set optimizer.kind=sgd`)
    .action(commandAction(finish, runCommand));
  withTrace(
    withOverrides(
      program
        .command("resume")
        .description("continue a run from its newest checkpoint")
        .argument(
          "<folder>",
          "output folder of a run; or a folder that contains runs, to resume the run that was written last",
        ),
    ),
  )
    .addHelpText("after", "\nExample:\n  skein-train resume runs/mnist/1")
    .action(commandAction(finish, resumeCommand));
  program
    .command("report")
    .description(
      "write a report page of a run, during or after training: losses, metrics, routing of tokens to experts",
    )
    .argument("<folder>", "output folder of the run")
    .option("--output <file>", "output file; default: report.html in the folder")
    .addHelpText("after", "\nExample:\n  skein-train report runs/mnist/1")
    .action(commandAction(finish, reportCommand));
  withOverrides(program.command("validate").description("validate a job file").argument("<job>", "job file"))
    .addHelpText("after", `\nExample:\n  skein-train validate ${sampleJob()}`)
    .action(commandAction(finish, validateCommand));
  withOverrides(
    program
      .command("doctor")
      .description(
        "print the compute devices of this machine and their speed, the backend that backend: auto would choose, and the memory of a step",
      )
      .argument("[job]", "job file"),
  )
    .addHelpText("after", `\nExample:\n  skein-train doctor ${sampleJob()}`)
    .action(commandAction(finish, doctorCommand));
  withOverrides(
    program
      .command("links")
      .description("measure the links between the ranks of a job, to choose algorithms from the results")
      .argument("<job>", "job file")
      .option("--output <file>", "output file; default: links.json"),
  )
    .addHelpText("after", `\nExample:\n  skein-train links ${sampleJob()} --transport tcp --ranks 2`)
    .action(commandAction(finish, linksCommand));
  addSweepCommand(program, finish, withOverrides);
  addFindBatchCommand(program, finish, withOverrides);
  addFindRateCommand(program, finish, withOverrides);
  addEvaluateCommand(program, finish);
  addImportCommand(program, finish);
  addGenerateCommand(program, finish);
  addExportCommand(program, finish);
  addCertsCommand(program, finish);
  addLaunchCommand(program, finish);
  addMpiCommand(program, finish);
  addBlasCommand(program, finish);
  addTokenizerCommand(program, finish);
  addMemberCommand(program, finish);
  addWatchCommand(program, finish);
  addRunsCommand(program, finish);
  addLogCommand(program, finish);
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
