import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { ConfigError, exitCodes, makeFolders, nodeFiles, replaceDurably, writeStdout } from "@skein/cli/node";
import { tokenizerTexts } from "@skein/data";
import { trainTokenizer } from "@skein/data/node";
import type { Command } from "commander";
import { numberOption, type NumberRange, wholeFrom } from "../command-line/number-option.ts";

interface TrainOptions {
  readonly vocabulary: string;
  readonly output: string;
  readonly field?: string;
  readonly minimumCount: string;
  readonly endOfText: string;
  readonly skipDamaged?: boolean;
  readonly json?: boolean;
}

/** Minimum vocabulary size: 256 bytes and an end-of-text token. */
const minVocabulary = 257;
const maxVocabulary = 2 ** 20;

const vocabularies: NumberRange = {
  rule: `a whole number from ${minVocabulary} (256 bytes and the end-of-text token) to ${maxVocabulary}`,
  fits: (value) => Number.isInteger(value) && value >= minVocabulary && value <= maxVocabulary,
};

/**
 * Returns the paths of the tokenizer file and of its configuration file. @throws ConfigError if a file exists, or if
 * `output` does not end with `.json` or is `tokenizer_config.json`.
 */
const filesOf = (output: string): { readonly tokenizer: string; readonly config: string } => {
  if (basename(output) === "tokenizer_config.json" || !output.endsWith(".json"))
    throw new ConfigError([`--output is ${output}, but must be a file such as tokenizer.json`]);
  const files = { tokenizer: output, config: join(dirname(output), "tokenizer_config.json") };
  const there = Object.values(files).find(existsSync);
  if (there !== undefined)
    throw new ConfigError([`${there}: the file already exists; remove it, or name another folder in --output`]);
  return files;
};

const trainCommand = async (file: readonly string[], options: TrainOptions): Promise<void> => {
  const { field, skipDamaged, endOfText, output } = options;
  const vocabulary = numberOption("vocabulary", options.vocabulary, vocabularies);
  const minimumCount = numberOption("minimum-count", options.minimumCount, wholeFrom(1));
  if (endOfText === "")
    throw new ConfigError(["--end-of-text is empty; give a string that does not occur in the texts"]);
  const files = filesOf(output);
  const began = performance.now();
  const learned = await trainTokenizer({ file, field, skipDamaged, vocabulary: vocabulary - 1, minimumCount });
  if (learned.tokens.includes(endOfText))
    throw new ConfigError([`--end-of-text is ${endOfText}, which is a token of the text; give another`]);
  const texts = tokenizerTexts(learned, endOfText);
  makeFolders(dirname(output));
  replaceDurably(nodeFiles, files.config, texts.config);
  replaceDurably(nodeFiles, files.tokenizer, texts.tokenizer);
  const tokens = learned.tokens.length + 1;
  const seconds = (performance.now() - began) / 1000;
  const result = { output, tokens, documents: learned.documents, damaged: learned.damaged.length, seconds };
  const few = tokens < vocabulary ? `; no further pair occurs ${minimumCount} times` : "";
  const left =
    result.damaged === 0
      ? ""
      : `\n${result.damaged} damaged lines or rows were skipped, the first is ${learned.damaged[0]}`;
  writeStdout(
    options.json === true
      ? `${JSON.stringify(result)}\n`
      : `${output}: ${tokens} tokens of ${result.documents} ${result.documents === 1 ? "text" : "texts"}${few}, in ${seconds.toFixed(1)} s${left}\nTrain on it with data: { kind: text, file: …, tokenizer: ${output} }\n`,
  );
};

/** Adds `tokenizer train` to the command line. `finish` receives the exit code. */
export const addTokenizerCommand = (program: Command, finish: (code: number) => void): void => {
  const train = program
    .command("tokenizer")
    .description("train a tokenizer on your texts")
    .command("train")
    .description(
      "train a byte-pair encoding, and write a Hugging Face tokenizer.json with tokenizer_config.json next to it",
    )
    .option(
      "--vocabulary <count>",
      "vocabulary size: maximum number of tokens, including the 256 bytes and the end-of-text token",
      "8192",
    )
    .option("--output <file>", "output file", "tokenizer.json")
    .argument("<text...>", "text, JSON Lines or Parquet files, or folders with such files");
  train
    .option("--field <key>", "key of the text in .jsonl lines, or its column in .parquet; default: text")
    .option("--skip-damaged", "skip .jsonl lines and .parquet rows that contain no text")
    .option("--minimum-count <count>", "minimum number of occurrences of a pair to become a token", "2")
    .option("--end-of-text <token>", "token at the end of each text, also between two texts", "<|endoftext|>");
  train
    .addHelpText(
      "after",
      "\nExample:\n  skein-train tokenizer train stories.jsonl --vocabulary 8192 --output words/tokenizer.json",
    )
    .action(async (file: readonly string[], _, command: Command) => {
      await trainCommand(file, command.optsWithGlobals<TrainOptions>());
      finish(exitCodes.ok);
    });
};
