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

/** Options that change the job for this time. */
const withJobOptions = (command: Command): Command =>
  command
    .option("--ranks <count>", "data-parallel ranks")
    .option("--transport <name>", "how ranks reach each other: threads, tcp, tls or mpi")
    .option("--set <key=value>", "replace a value of the job; may be repeated", collect, []);

const makeProgram = (finish: (code: number) => void): Command => {
  const program = new Command("skein-profile")
    .description("Where the time of a training step goes.")
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
      .description("run a job for some steps, and report where their time goes")
      .argument("<job>", "job file, YAML or JSON"),
  )
    .option("--steps <count>", "steps that count", "20")
    .option("--warm-up <count>", "steps before them that do not: compilation, cold caches", "5")
    .option("--output <folder>", "where the report goes; default: profiles/<name>/<number>")
    .option(
      "--hardware <file>",
      "lay the prediction for this hardware over what is measured; as calibrate has written it",
    )
    .option("--apply <file>", "write the job with the schedule that is advised there, beside the job file")
    .option("--json", "print the report as JSON, and nothing else")
    .addHelpText("after", "\nExample:\n  skein-profile run job.yaml --ranks 2")
    .action(async (file: string, options: RunCommandOptions) => finish(await runCommand(file, options)));
  withJobOptions(
    program
      .command("links")
      .description("measure what messages between the ranks of a job cost")
      .argument("<job>", "job file, YAML or JSON"),
  )
    .option(
      "--hardware <file>",
      "a hardware file, or the name of one that is shipped, that these links are put into; with --output",
    )
    .option("--output <file>", "where that hardware file goes")
    .option("--json", "print the links as one line of JSON")
    .addHelpText("after", "\nExample:\n  skein-profile links job.yaml --transport tcp --ranks 2")
    .action(async (file: string, options: LinksCommandOptions) => finish(await linksCommand(file, options)));
  withJobOptions(
    program
      .command("calibrate")
      .description("measure this machine by single kernels and by jobs, and write a hardware file")
      .argument("<jobs...>", "job files with the operators and ranks that predictions are wanted for"),
  )
    .option("--steps <count>", "steps of each job that count", "20")
    .option("--warm-up <count>", "steps before them that do not: compilation, cold caches", "20")
    .option(
      "--rounds <count>",
      "times that all jobs are gone through: what slows a machine for a minute is no matter of one job",
      "3",
    )
    .option("--output <file>", "where the hardware file goes", "hardware.json")
    .addHelpText("after", "\nExample:\n  skein-profile calibrate job.yaml --ranks 2")
    .action(async (files: string[], options: CalibrateCommandOptions) =>
      finish(await calibrateCommand(files, options)),
    );
  withJobOptions(
    program
      .command("predict")
      .description("say what a step of a job would take on some hardware")
      .argument("<job>", "job file, YAML or JSON"),
  )
    .requiredOption("--hardware <file>", "a hardware file, or the name of one that is shipped")
    .option(
      "--measured <ranks=seconds>",
      "a measured step on fewer ranks: adds the extrapolation without a model; may be repeated",
      collect,
      [],
    )
    .option("--json", "print the result as one line of JSON")
    .addHelpText("after", "\nExample:\n  skein-profile predict job.yaml --hardware hardware.json --ranks 8")
    .action(async (file: string, options: PredictCommandOptions) => finish(await predictCommand(file, options)));
  withJobOptions(
    program
      .command("plan")
      .description("say which compression, overlap, buckets and number of ranks are fastest for a job on some hardware")
      .argument("<job>", "job file, YAML or JSON"),
  )
    .requiredOption("--hardware <file>", "a hardware file, or the name of one that is shipped")
    .option("--lossless", "only what computes the same")
    .addOption(
      new Option(
        "--keep <what>",
        "with several numbers of ranks: the samples of a step that stay, of each rank or of all",
      )
        .choices(["rank-batch", "global-batch"])
        .default("rank-batch"),
    )
    .option("--apply <file>", "write the job with the fastest configuration there, beside the job file")
    .option("--json", "print all configurations and their scores as one line of JSON")
    .addHelpText("after", "\nExample:\n  skein-profile plan job.yaml --hardware hardware.json --ranks 2..64")
    .action(async (file: string, options: PlanCommandOptions) => finish(await planCommand(file, options)));
  withJobOptions(
    program
      .command("report")
      .description("make the report of a trace that skein-train or skein-profile has written")
      .argument("<trace.json>", "the trace; one that was cut off is read up to the cut")
      .option("--job <job.yaml>", "the job that it was made of: adds flops, roofline and memory"),
  )
    .option("--warm-up <count>", "steps at its beginning that do not count", "5")
    .option("--output <folder>", "where the report goes; default: profiles/<name>/<number>")
    .option("--hardware <file>", "with --job: lay the prediction for this hardware over what was measured")
    .option("--json", "print the report as JSON, and nothing else on standard output")
    .addHelpText("after", "\nExample:\n  skein-profile report trace.json --job job.yaml --ranks 2")
    .action(async (file: string, options: ReportCommandOptions) => finish(await reportCommand(file, options)));
  program
    .command("compare")
    .description("say what differs between two reports by more than chance")
    .argument("<before>", "report.json of a profile")
    .argument("<after>", "report.json of another")
    .addHelpText(
      "after",
      "\nExample:\n  skein-profile compare profiles/mnist/1/report.json profiles/mnist/2/report.json",
    )
    .action((before: string, after: string) => finish(compareCommand(before, after)));
  program
    .command("model")
    .description("say where time and memory of a large model would go, by its shapes")
    .argument("<name>", "gpt-2, llama-2-7b, resnet-50 and the like; a wrong name lists all")
    .requiredOption("--hardware <file>", "a hardware file, or the name of one that is shipped")
    .option("--batch <count>", "sequences or images of a rank", "1")
    .option("--sequence <tokens>", "length of a sequence in training; default: the model's context")
    .addOption(
      new Option("--zero <stage>", "what data ranks share of states, gradients, weights")
        .choices(["0", "1", "2", "3"])
        .default("0"),
    )
    .addOption(
      new Option("--recompute <what>", "what is computed anew in the backward pass")
        .choices(["none", "selective", "full"])
        .default("none"),
    )
    .addOption(
      new Option("--precision <kind>", "default: mixed-bf16").choices(["f32", "tf32", "mixed-f16", "mixed-bf16"]),
    )
    .addOption(new Option("--quantized <type>", "what the layers' matrices are stored as").choices(["i8", "i4"]))
    .option("--lora <rank>", "train low-rank adapters of queries and values, and nothing else")
    .option("--no-flash", "attention whose scores go through memory")
    .option("--tensor-parallel <ranks>", "ranks that share each layer", "1")
    .option("--inference", "in place of training")
    .option("--prompt <tokens>", "of each sequence, in inference")
    .option("--output <tokens>", "that are generated, in inference")
    .option("--json", "print all figures as one line of JSON")
    .addHelpText("after", "\nExample:\n  skein-profile model llama-2-7b --hardware a800 --zero 2 --lora 64")
    .action((name: string, options: ModelCommandOptions) => finish(modelCommand(name, options)));
  program
    .command("shaders")
    .description("print the WGSL that a function of tensors, or a job's step, runs on WebGPU; needs no GPU")
    .argument("[function]", "a function of tensors: matmul, softmax, top-k and the like; a wrong name lists all")
    .option("--shapes <shapes>", "of its operands: 128x256,256x64; scalar for one without dimensions")
    .option("--dtypes <types>", "their storage types, one for each or one for all", "f32")
    .option("--with <json>", "what it takes after its tensors: an object of options, or a list")
    .option("--gradient", "also what its gradients take")
    .option("--job <file>", "in place of a function: the training step of a job file")
    .option("--ranks <count>", "with --job: data-parallel ranks")
    .option("--set <key=value>", "with --job: replace a value of the job; may be repeated", collect, [])
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

/** The command line. @returns the exit code. */
export const main = async (args: readonly string[]): Promise<number> => {
  let code: number = exitCodes.usage;
  try {
    await makeProgram((result) => {
      code = result;
    }).parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    // commander has said why
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    const { text, code: failed } = explain(error);
    writeStderr(`${text}\n`);
    return failed;
  }
};
