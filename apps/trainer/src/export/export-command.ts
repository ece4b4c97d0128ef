import { commandAction, ConfigError, exitCodes, type GlobalOptions, writeStdout } from "@skein/cli/node";
import type { Command } from "commander";
import { checkpointOption } from "../command-line/number-option.ts";
import { recordedJob } from "../output-folder/output-folder.ts";
import { announceCode } from "../command-line/announce-code.ts";
import { openSavedRun, type SavedRun } from "../output-folder/saved-run.ts";

interface ExportOptions extends GlobalOptions {
  readonly output: string;
  readonly format: string;
  readonly dtype?: string;
  readonly checkpoint?: string;
}

const dtypes = ["f32", "f16", "bf16"] as const;
type DType = (typeof dtypes)[number];

/** Result of an export: names of the written files, and remarks for the user. */
interface Exported {
  readonly files: readonly string[];
  readonly remarks: readonly string[];
}

/** Function that writes the model of a run in an export format. */
type Exporter = (run: SavedRun, output: string, options: { readonly dtype?: DType }) => Promise<Exported>;

/** Exporters by format name, imported on demand because no other command needs their modules. */
const formats: ReadonlyMap<string, Exporter> = new Map<string, Exporter>([
  ["onnx", async (...args) => ({ files: await (await import("./onnx.ts")).exportOnnxModel(...args), remarks: [] })],
  ["huggingface", async (...args) => (await import("./hugging-face.ts")).exportHuggingFace(...args)],
]);

const oneOf = <T extends string>(option: string, value: string, known: readonly T[]): T => {
  if ((known as readonly string[]).includes(value)) return value as T;
  throw new ConfigError([`--${option} is ${JSON.stringify(value)}, but must be one of ${known.join(", ")}`]);
};

/**
 * Implements `skein-train export`: writes the trained model of a run for other programs.
 *
 * @returns the exit code.
 * @throws ConfigError, CheckpointError, PretrainedError.
 */
export const exportCommand = async (folder: string, options: ExportOptions): Promise<number> => {
  const { output, checkpoint } = options;
  const format = oneOf("format", options.format, [...formats.keys()]);
  const dtype = options.dtype === undefined ? undefined : oneOf("dtype", options.dtype, dtypes);
  announceCode([recordedJob(folder)], options);
  const run = await openSavedRun(folder, checkpointOption(checkpoint));
  const { files, remarks } = await formats.get(format)!(run, output, dtype === undefined ? {} : { dtype });
  writeStdout(
    options.json === true
      ? `${JSON.stringify({ output, format, step: run.step, files, ...(remarks.length > 0 && { remarks }) })}\n`
      : [`step ${run.step} written to ${output}: ${files.join(", ")}`, ...remarks, ""].join("\n"),
  );
  return exitCodes.ok;
};

/** Adds `export` to the command line. `finish` receives the exit code. */
export const addExportCommand = (program: Command, finish: (code: number) => void): void => {
  program
    .command("export")
    .description("export the model of a run for other programs")
    .argument("<folder>", "output folder of the run")
    .requiredOption("--output <path>", "output file, or for huggingface a folder")
    .option("--format <name>", `format, one of ${[...formats.keys()].join(", ")}`, "huggingface")
    .option(
      "--dtype <name>",
      `data type of the weights, one of ${dtypes.join(", ")}; for onnx f32 or f16; default: f32`,
    )
    .option("--checkpoint <step>", "step of the checkpoint, or best; default: the newest")
    .addHelpText(
      "after",
      "\nExamples:\n  skein-train export runs/mnist/1 --format onnx --output digits.onnx\n  skein-train export runs/tale/1 --format huggingface --output my-llama --dtype bf16",
    )
    .action(commandAction(finish, exportCommand));
};
