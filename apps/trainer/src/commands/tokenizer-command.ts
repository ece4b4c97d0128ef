import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { tokenizerTexts } from "@skein/data";
import { trainTokenizer } from "@skein/data/node";
import type { Command } from "commander";
import { ConfigError, exitCodes } from "../errors.ts";
import { nodeFiles, replaceDurably } from "../files/files.ts";
import { makeFolders } from "../files/make-folders.ts";
import { numberOption, type NumberRange, wholeFrom } from "../command-line/number-option.ts";
import { writeStdout } from "../console/terminal.ts";

interface TrainOptions {
  readonly vocabulary: string;
  readonly output: string;
  readonly field?: string;
  readonly minimumCount: string;
  readonly endOfText: string;
  readonly skipDamaged?: boolean;
  readonly json?: boolean;
}

/** All bytes, and the token that ends a text. */
const leastVocabulary = 257;
const mostVocabulary = 2 ** 20;

const vocabularies: NumberRange = {
  rule: `a whole number from ${leastVocabulary}, each byte and the end of a text being a token, to ${mostVocabulary}`,
  fits: (value) => Number.isInteger(value) && value >= leastVocabulary && value <= mostVocabulary,
};

/** The files to write. @throws ConfigError where one is there already, or would not be found again. */
const filesOf = (output: string): { readonly tokenizer: string; readonly config: string } => {
  if (basename(output) === "tokenizer_config.json" || !output.endsWith(".json"))
    throw new ConfigError([`--output is ${output}, but must be a file such as tokenizer.json`]);
  const files = { tokenizer: output, config: join(dirname(output), "tokenizer_config.json") };
  const there = Object.values(files).find(existsSync);
  if (there !== undefined)
    throw new ConfigError([`${there}: it is there already; remove it, or name another folder in --output`]);
  return files;
};

const trainCommand = async (file: readonly string[], options: TrainOptions): Promise<void> => {
  const { field, skipDamaged, endOfText, output } = options;
  const vocabulary = numberOption("vocabulary", options.vocabulary, vocabularies);
  const minimumCount = numberOption("minimum-count", options.minimumCount, wholeFrom(1));
  if (endOfText === "") throw new ConfigError(["--end-of-text is empty; give a text that occurs nowhere else"]);
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
  const few = tokens < vocabulary ? `; no other pair is there ${minimumCount} times` : "";
  const left =
    result.damaged === 0 ? "" : `\n${result.damaged} damaged lines or rows were left out, ${learned.damaged[0]} first`;
  writeStdout(
    options.json === true
      ? `${JSON.stringify(result)}\n`
      : `${output}: ${tokens} tokens of ${result.documents} ${result.documents === 1 ? "text" : "texts"}${few}, in ${seconds.toFixed(1)} s${left}\nTrain on it with data: { kind: text, file: …, tokenizer: ${output} }\n`,
  );
};

/** Add `tokenizer train` to the command line. `finish` takes the exit code. */
export const addTokenizerCommand = (program: Command, finish: (code: number) => void): void => {
  const train = program
    .command("tokenizer")
    .description("make a tokenizer of texts of yours")
    .command("train")
    .description("learn byte pairs, and write a tokenizer.json of Hugging Face's with tokenizer_config.json beside it")
    .option("--vocabulary <count>", "most tokens, all bytes and the end of a text among them", "8192")
    .option("--output <file>", "where it goes", "tokenizer.json")
    .argument("<text...>", "files of text, of JSON lines or of Parquet, or folders with such files");
  train
    .option("--field <key>", "key of the text in lines of .jsonl, column of it in .parquet; default: text")
    .option("--skip-damaged", "leave out lines of .jsonl and rows of .parquet that hold no text")
    .option("--minimum-count <count>", "a pair becomes a token when it is there so often", "2")
    .option("--end-of-text <token>", "token that ends a text, and stands between two", "<|endoftext|>");
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
