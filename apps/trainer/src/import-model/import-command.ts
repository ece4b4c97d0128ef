import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  commandAction,
  ConfigError,
  exitCodes,
  type GlobalOptions,
  requireNewFile,
  writeStdout,
} from "@skein/cli/node";
import { tokenizerFile } from "@skein/data/node";
import { loadPretrained } from "@skein/pretrained/node";
import { elementCount, flattenTree, type NdArray } from "@skein/tensor-core";
import type { Command } from "commander";
import { jobTextOf } from "./import-job.ts";

interface ImportOptions extends GlobalOptions {
  readonly output?: string;
}

/**
 * Implements `skein-train import`: reads all files of a folder in Hugging Face format, and writes a job that trains the
 * model.
 *
 * @returns the exit code.
 * @throws PretrainedError or SafetensorsError if a file is unreadable; ConfigError if the job file already exists.
 */
export const importCommand = async (place: string, { output, json }: ImportOptions): Promise<number> => {
  if (output !== undefined) {
    if (existsSync(output))
      throw new ConfigError([`--output ${output} already exists, and is not changed; name a new file`]);
    requireNewFile(output, "--output");
  }
  const { config, params, stored } = await loadPretrained(place);
  const kind = String(config["model_type"]);
  const parameters = flattenTree<NdArray>(params).leaves.reduce((sum, { shape }) => sum + elementCount(shape), 0);
  const dtypes = [...new Set([...stored.leaves.values()].map(({ dtype }) => dtype))].sort();
  const hasTokenizer = existsSync(join(place, tokenizerFile));
  if (output !== undefined) writeFileSync(output, await jobTextOf(place, output, config), { flag: "wx" });
  const facts = { folder: place, kind, parameters, dtypes, tokenizer: hasTokenizer, carried: stored.carried.size };
  writeStdout(
    json === true
      ? `${JSON.stringify({ ...facts, ...(output !== undefined && { job: output }) })}\n`
      : [
          `${place}: a ${kind} of ${parameters.toLocaleString("en")} parameters in ${dtypes.join(", ")}, ${hasTokenizer ? "with" : "without"} a ${tokenizerFile}`,
          output === undefined ? "to get a job that trains it, add --output job.yaml" : `written to ${output}`,
          "",
        ].join("\n"),
  );
  return exitCodes.ok;
};

/** Adds `import` to the command line. `finish` receives the exit code. */
export const addImportCommand = (program: Command, finish: (code: number) => void): void => {
  program
    .command("import")
    .description("inspect a checkpoint in Hugging Face's layout, and write a job that trains it")
    .argument("<folder>", "folder with config.json and safetensors")
    .option("--output <file>", "path of the job; default: nothing is written")
    .addHelpText("after", "\nExample:\n  skein-train import ./my-llama --output job.yaml")
    .action(commandAction(finish, importCommand));
};
