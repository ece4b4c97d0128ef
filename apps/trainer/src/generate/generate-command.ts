import { existsSync } from "node:fs";
import { join } from "node:path";
import { commandAction, exitCodes, type GlobalOptions, writeStdout } from "@skein/cli/node";
import type { Command } from "commander";
import { openSingleRankBackend } from "../backend/single-rank-backend.ts";
import { checkpointOption, type NumberRange, numberOption, wholeFrom } from "../command-line/number-option.ts";
import { jobFile, recordedJob } from "../output-folder/output-folder.ts";
import { announceCode } from "../command-line/announce-code.ts";
import { type Generation, generateText } from "./generate-text.ts";
import { openTextModel } from "./text-model.ts";

interface GenerateOptions extends GlobalOptions {
  readonly prompt: string;
  readonly tokens: string;
  readonly temperature: string;
  readonly topK?: string;
  readonly topP?: string;
  readonly seed: string;
  readonly count: string;
  readonly stop?: string;
  readonly checkpoint?: string;
}

const temperatures: NumberRange = {
  rule: "a number from 0; 0: the most likely token",
  fits: (value) => value >= 0,
};
const shares: NumberRange = { rule: "a number above 0 and at most 1", fits: (value) => value > 0 && value <= 1 };

const generationOf = (options: GenerateOptions): Generation => ({
  prompt: options.prompt,
  tokens: numberOption("tokens", options.tokens, wholeFrom(1)),
  temperature: numberOption("temperature", options.temperature, temperatures),
  topK: options.topK === undefined ? undefined : numberOption("top-k", options.topK, wholeFrom(1)),
  topP: options.topP === undefined ? undefined : numberOption("top-p", options.topP, shares),
  seed: numberOption("seed", options.seed, wholeFrom(0)),
  count: numberOption("count", options.count, wholeFrom(1)),
  stop: options.stop === "" ? undefined : options.stop,
});

/**
 * Implements `skein-train generate`: continues a text with a trained model.
 *
 * @returns the exit code.
 * @throws ConfigError, CheckpointError, PretrainedError, DataError.
 */
export const generateCommand = async (folder: string, options: GenerateOptions): Promise<number> => {
  const generation = generationOf(options);
  if (existsSync(join(folder, jobFile))) announceCode([recordedJob(folder)], options);
  const model = await openTextModel(folder, checkpointOption(options.checkpoint));
  const { backend, close } = await openSingleRankBackend({ backend: "cpu", blas: "auto" });
  // Text is not escaped for files and pipes.
  const write = (text: string): void => (process.stdout.isTTY ? writeStdout(text) : void process.stdout.write(text));
  try {
    if (options.json === true) {
      const texts = await generateText(model, generation, backend);
      write(`${JSON.stringify({ prompt: generation.prompt, texts })}\n`);
      return exitCodes.ok;
    }
    let lastIndex = -1;
    await generateText(
      model,
      {
        ...generation,
        onText: (text, index) => {
          if (index > lastIndex) write(`${lastIndex < 0 ? "" : "\n\n"}${generation.prompt}`);
          lastIndex = index;
          write(text);
        },
      },
      backend,
    );
    write("\n");
    return exitCodes.ok;
  } finally {
    await close();
  }
};

/** Adds `generate` to the command line. `finish` receives the exit code. */
export const addGenerateCommand = (program: Command, finish: (code: number) => void): void => {
  program
    .command("generate")
    .description("continue a text with a trained run, or with a model folder in Hugging Face's layout")
    .argument("<folder>", "output folder of a run on text, or a folder with config.json")
    .requiredOption("--prompt <text>", "text to continue")
    .option("--tokens <count>", "maximum number of tokens to generate", "100")
    .option("--temperature <number>", "sampling temperature, the divisor of logits; 0: the most likely token", "1")
    .option("--top-k <count>", "sample only from this many most likely tokens")
    .option("--top-p <share>", "sample only from the most likely tokens with this total probability")
    .option("--seed <number>", "random seed; the same seed gives the same tokens", "0")
    .option("--count <count>", "number of continuations", "1")
    .option("--stop <text>", "stop before this text")
    .option("--checkpoint <step>", "step of a run's checkpoint, or best; default: the newest")
    .addHelpText("after", '\nExample:\n  skein-train generate runs/moby-dick/1 --prompt "Call me "')
    .action(commandAction(finish, generateCommand));
};
