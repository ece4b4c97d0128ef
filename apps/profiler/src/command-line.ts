import { Command, CommanderError, Option } from "commander";
import packageJson from "../package.json" with { type: "json" };
import { calibrateCommand, type CalibrateCommandOptions } from "./commands/calibrate-command.ts";
import { compareCommand } from "./commands/compare-command.ts";
import { linksCommand, type LinksCommandOptions } from "./commands/links-command.ts";
import { modelCommand, type ModelCommandOptions } from "./commands/model-command.ts";
import { planCommand, type PlanCommandOptions } from "./commands/plan-command.ts";
import { predictCommand, type PredictCommandOptions } from "./commands/predict-command.ts";
import { reportCommand, type ReportCommandOptions } from "./commands/report-command.ts";
import { shadersCommand, type ShadersCommandOptions } from "./commands/shaders-command.ts";
import { runCommand, type RunCommandOptions } from "./commands/run-command.ts";
import { exitCodes, explain } from "./errors.ts";
import { asTyped } from "./own-command.ts";
import { writeStderr, writeStdout } from "skein-train/profiling";
import { visibleText } from "@skein/tensor-core/backend";

const collect = (value: string, list: readonly string[]): string[] => [...list, value];

/** Adds the options that override settings of the job, such as `--ranks`, to a subcommand. */
const withJobOptions = (command: Command): Command =>
  command
    .option("--ranks <count>", "data-parallel ranks")
    .option("--transport <name>", "how ranks communicate: threads, tcp, tls or mpi")
    .addOption(
      new Option("--set <key=value>", "replace a value of the job; may be repeated")
        .argParser(collect)
        .default([], "none"),
    );

const makeProgram = (finish: (code: number) => void): Command => {
  const program = new Command("skein-profile")
    .description("Profile the steps of a training job, and predict them on other hardware.")
    .version(packageJson.version, "--version", "print the version")
    .showHelpAfterError("(add --help for the options)")
    .configureOutput({
      outputError: (text, write) => write(visibleText(text)),
      writeOut: (text) => writeStdout(text.replaceAll(/^ {2}skein-profile .*$/gm, (line) => asTyped(line))),
    })
    .exitOverride();
  withJobOptions(
    program
      .command("run")
      .description("run a job for some steps, and report how their time is spent")
      .argument("<job>", "job file, YAML or JSON"),
  )
    .option("--steps <count>", "measured steps", "20")
    .option("--warm-up <count>", "steps before the measured ones: compilation, cold caches", "5")
    .option("--output <folder>", "folder of the report; default: profiles/<name>/<number>")
    .option(
      "--hardware <file>",
      "show the prediction for this hardware next to the measured steps; a file written by calibrate, or a shipped name",
    )
    .option("--apply <file>", "write the job with the advised schedule to this file, in the folder of the job file")
    .option("--json", "print the report as JSON, and nothing else")
    .addHelpText("after", "\nExample:\n  skein-profile run job.yaml --ranks 2")
    .action(async (file: string, options: RunCommandOptions) => finish(await runCommand(file, options)));
  withJobOptions(
    program
      .command("links")
      .description("measure the cost of messages between the ranks of a job")
      .argument("<job>", "job file, YAML or JSON"),
  )
    .option(
      "--hardware <file>",
      "a hardware file, or the name of a shipped one, whose links are replaced by the measured links; with --output",
    )
    .option("--output <file>", "hardware file to write")
    .option("--json", "print the links as one line of JSON")
    .addHelpText("after", "\nExample:\n  skein-profile links job.yaml --transport tcp --ranks 2")
    .action(async (file: string, options: LinksCommandOptions) => finish(await linksCommand(file, options)));
  withJobOptions(
    program
      .command("calibrate")
      .description("measure this machine with single kernels and with jobs, and write a hardware file")
      .argument("<jobs...>", "job files with the operators and ranks that you want to predict"),
  )
    .option("--steps <count>", "measured steps of each job", "20")
    .option("--warm-up <count>", "steps before the measured ones: compilation, cold caches", "20")
    .option(
      "--rounds <count>",
      "how often to measure each job; all jobs take turns, so that a slow minute does not affect one job only",
      "3",
    )
    .option("--output <file>", "hardware file to write", "hardware.json")
    .addHelpText("after", "\nExample:\n  skein-profile calibrate job.yaml --ranks 2")
    .action(async (files: string[], options: CalibrateCommandOptions) =>
      finish(await calibrateCommand(files, options)),
    );
  withJobOptions(
    program
      .command("predict")
      .description("predict the step of a job on given hardware")
      .argument("<job>", "job file, YAML or JSON"),
  )
    .requiredOption("--hardware <file>", "a hardware file, or the name of a shipped one")
    .addOption(
      new Option(
        "--measured <ranks=seconds>",
        "a measured step on fewer ranks: adds an extrapolation without a model; may be repeated",
      )
        .argParser(collect)
        .default([], "none"),
    )
    .option("--json", "print the result as one line of JSON")
    .addHelpText("after", "\nExample:\n  skein-profile predict job.yaml --hardware hardware.json --ranks 8")
    .action(async (file: string, options: PredictCommandOptions) => finish(await predictCommand(file, options)));
  withJobOptions(
    program
      .command("plan")
      .description("find the fastest compression, overlap, buckets and number of ranks for a job on given hardware")
      .argument("<job>", "job file, YAML or JSON"),
  )
    .requiredOption("--hardware <file>", "a hardware file, or the name of a shipped one")
    .option("--lossless", "only configurations that compute the same result")
    .addOption(
      new Option(
        "--keep <what>",
        "with several numbers of ranks: which batch size stays constant, that of each rank or that of all ranks together",
      )
        .choices(["rank-batch", "global-batch"])
        .default("rank-batch"),
    )
    .option(
      "--apply <file>",
      "write the job with the fastest configuration to this file, in the folder of the job file",
    )
    .option("--json", "print all configurations and their scores as one line of JSON")
    .addHelpText("after", "\nExample:\n  skein-profile plan job.yaml --hardware hardware.json --ranks 2..64")
    .action(async (file: string, options: PlanCommandOptions) => finish(await planCommand(file, options)));
  withJobOptions(
    program
      .command("report")
      .description("make a report from a trace written by skein-train or skein-profile")
      .argument("<trace.json>", "the trace; a truncated trace is read up to the cut")
      .option("--job <job.yaml>", "the job of the trace: adds flops, roofline and memory"),
  )
    .option("--warm-up <count>", "steps to skip at the beginning", "5")
    .option("--output <folder>", "folder of the report; default: profiles/<name>/<number>")
    .option("--hardware <file>", "with --job: show the prediction for this hardware next to the measured steps")
    .option("--json", "print the report as JSON, and nothing else on standard output")
    .addHelpText("after", "\nExample:\n  skein-profile report trace.json --job job.yaml --ranks 2")
    .action(async (file: string, options: ReportCommandOptions) => finish(await reportCommand(file, options)));
  program
    .command("compare")
    .description("list differences between two reports that are larger than chance")
    .argument("<before>", "report.json of a profile")
    .argument("<after>", "report.json of another profile")
    .addHelpText(
      "after",
      "\nExample:\n  skein-profile compare profiles/mnist/1/report.json profiles/mnist/2/report.json",
    )
    .action((before: string, after: string) => finish(compareCommand(before, after)));
  program
    .command("model")
    .description("estimate time and memory of a large model from its shapes")
    .argument("<name>", "gpt-2, llama-2-7b, resnet-50 and so on; a wrong name lists all")
    .requiredOption("--hardware <file>", "a hardware file, or the name of a shipped one")
    .option("--batch <count>", "sequences or images per rank", "1")
    .option("--sequence <tokens>", "sequence length in training; default: the model's context")
    .addOption(
      new Option(
        "--zero <stage>",
        "ZeRO stage: data ranks shard optimizer states (1), also gradients (2), also weights (3)",
      )
        .choices(["0", "1", "2", "3"])
        .default("0"),
    )
    .addOption(
      new Option("--recompute <what>", "activation recomputation in the backward pass")
        .choices(["none", "selective", "full"])
        .default("none"),
    )
    .addOption(
      new Option("--precision <kind>", "numeric precision; default: mixed-bf16").choices([
        "f32",
        "tf32",
        "mixed-f16",
        "mixed-bf16",
      ]),
    )
    .addOption(new Option("--quantized <type>", "storage type of the layers' matrices").choices(["i8", "i4"]))
    .option("--lora <rank>", "train only low-rank adapters of queries and values")
    .option("--no-flash", "assume attention that stores its scores in memory")
    .option("--tensor-parallel <ranks>", "ranks that share each layer", "1")
    .option("--inference", "estimate inference instead of training")
    .option("--prompt <tokens>", "prompt tokens of each sequence, in inference")
    .option("--output <tokens>", "generated tokens of each sequence, in inference")
    .option("--json", "print all figures as one line of JSON")
    .addHelpText("after", "\nExample:\n  skein-profile model llama-2-7b --hardware a800 --zero 2 --lora 64")
    .action((name: string, options: ModelCommandOptions) => finish(modelCommand(name, options)));
  program
    .command("shaders")
    .description("print the WGSL of a tensor function or of a job's step; needs no GPU")
    .argument("[function]", "a tensor function: matmul, softmax, top-k and so on; a wrong name lists all")
    .option("--shapes <shapes>", "shapes of the operands: 128x256,256x64; scalar for an operand without dimensions")
    .option("--dtypes <types>", "storage types of the operands, one for each or one for all", "f32")
    .option("--with <json>", "arguments after the tensors: an object of options, or a list")
    .option("--gradient", "also print the shaders of the gradients")
    .option("--job <file>", "instead of a function: the training step of a job file")
    .option("--ranks <count>", "with --job: data-parallel ranks")
    .addOption(
      new Option("--set <key=value>", "with --job: replace a value of the job; may be repeated")
        .argParser(collect)
        .default([], "none"),
    )
    .addOption(
      new Option("--device <which>", "WebGPU's default limits without optional features, or this machine's adapter")
        .choices(["least", "here"])
        .default("least"),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  skein-profile shaders matmul --shapes 128x256,256x64\n  skein-profile shaders --job job.yaml",
    )
    .action(async (name: string | undefined, options: ShadersCommandOptions) =>
      finish(await shadersCommand(name, options)),
    );
  return program;
};

/**
 * Runs the command line.
 * @returns the exit code.
 */
export const main = async (args: readonly string[]): Promise<number> => {
  let code: number = exitCodes.usage;
  try {
    await makeProgram((result) => {
      code = result;
    }).parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    // commander has already printed the error message
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    const { text, code: failed } = explain(error);
    writeStderr(`${text}\n`);
    return failed;
  }
};
