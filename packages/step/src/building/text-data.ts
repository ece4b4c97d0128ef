import { ConfigError } from "@skein/cli/node";
import { fileWindows, splitText, textRecords, type Tokenizer } from "@skein/data";
import {
  type DocumentOptions,
  type Documents,
  haveFields,
  joinDocuments,
  loadDocuments,
  loadMobyDick,
  loadTokenFile,
  loadTokenizer,
  openTextStream,
  openTokenFile,
} from "@skein/data/node";
import type { DataJob, TextJob } from "@skein/job/node";
import { InvariantError } from "@skein/tensor-core";
import type { DataSet, TrainingData } from "../task/task.ts";

type Text = Documents["text"];
type TokenJob = Extract<DataJob, { readonly kind: "tokens" }>;

/** Returns training windows of a text, and evaluation windows of `heldOut` or, by default, of the end of the text. */
const windowsOf = (text: Text, { window, testFraction }: TextJob, heldOut?: Text): Pick<DataSet, "train" | "test"> => {
  const { train, valid } = heldOut === undefined ? splitText(text, testFraction) : { train: text, valid: heldOut };
  return {
    train: textRecords(train, window, "the training text"),
    test: textRecords(valid, window, "the evaluation text"),
  };
};

const predictionOf = (tokenizer: Tokenizer | undefined): Pick<DataSet, "predicts" | "classes"> =>
  tokenizer === undefined ? { predicts: "bytes", classes: 256 } : { predicts: "tokens", classes: tokenizer.vocabulary };

/** Returns the windows of a text. Without a tokenizer, tokens are bytes. */
const windowsIn = (text: Text, job: TextJob, tokenizer: Tokenizer | undefined, heldOut?: Text): DataSet => ({
  ...windowsOf(text, job, heldOut),
  ...predictionOf(tokenizer),
});

const tokenizerOf = ({ tokenizer }: TextJob, from: string): Tokenizer | undefined =>
  tokenizer === undefined ? undefined : loadTokenizer(tokenizer, from);

/** Loads windows of Moby-Dick. @param from File URL from which optional packages are resolved. */
export const mobyDickData = async (job: TextJob, from: string): Promise<DataSet> => {
  const tokenizer = tokenizerOf(job, from);
  return windowsIn(await joinDocuments([loadMobyDick({ from })], { tokenizer }), job, tokenizer);
};

/**
 * Returns the options for loading the evaluation texts: `field` is omitted for plain-text files, which have no fields.
 */
const evaluationTexts = (
  job: Extract<DataJob, { readonly kind: "text" }>,
  file: string | readonly string[],
  tokenizer: Tokenizer | undefined,
): DocumentOptions => ({ ...job, file, field: haveFields(file) ? job.field : undefined, tokenizer });

/**
 * Loads windows of concatenated texts, or of streamed texts.
 *
 * @param from File URL from which optional packages are resolved.
 */
export const textData = async (
  job: Extract<DataJob, { readonly kind: "text" }>,
  from: string,
): Promise<TrainingData> => {
  const tokenizer = tokenizerOf(job, from);
  const { testFile, stream } = job;
  const heldOut = testFile === undefined ? undefined : await loadDocuments(evaluationTexts(job, testFile, tokenizer));
  if (stream !== undefined) {
    if (heldOut === undefined) throw new InvariantError("a stream of texts has no evaluation texts");
    const place = job.tokenizer === undefined ? undefined : { place: job.tokenizer, from };
    const { train, remarks } = openTextStream({ ...job, ...stream, tokenizer: place });
    return {
      train,
      test: textRecords(heldOut.text, job.window, "the evaluation text"),
      ...predictionOf(tokenizer),
      remarks: [...remarks, ...heldOut.remarks],
    };
  }
  const { text, remarks } = await loadDocuments({ ...job, tokenizer });
  return {
    ...windowsIn(text, job, tokenizer, heldOut?.text),
    remarks: [...remarks, ...(heldOut?.remarks ?? []).map((remark) => `evaluation text: ${remark}`)],
  };
};

/** Returns windows of tokens that stay on disk. */
const filedData = (job: TokenJob, vocabulary: number | undefined): DataSet => {
  const { file, testFile, testFraction, window } = job;
  if (vocabulary === undefined)
    throw new ConfigError([
      "data.vocabulary is missing: with onDisk the tokens are not scanned for the largest one; give vocabulary, or tokenizer",
    ]);
  const learned = openTokenFile(file, { ...job, vocabulary });
  const heldOut = testFile === undefined ? undefined : openTokenFile(testFile, { ...job, vocabulary });
  const cut = heldOut === undefined ? Math.floor(learned.count * (1 - testFraction)) : learned.count;
  const rest = heldOut === undefined ? { begin: cut, end: learned.count } : { begin: 0, end: heldOut.count };
  return {
    train: fileWindows(learned, { begin: 0, end: cut }, window, "the training text"),
    test: fileWindows(heldOut ?? learned, rest, window, "the evaluation text"),
    predicts: "tokens",
    classes: vocabulary,
    remarks: ["tokens stay on disk, and are read when a batch needs them"],
  };
};

/**
 * Returns windows of tokens that are read from files.
 *
 * @param from File URL from which optional packages are resolved.
 */
export const tokenData = (job: TokenJob, from: string): DataSet => {
  const { file, testFile } = job;
  const tokenizerVocabulary = tokenizerOf(job, from)?.vocabulary;
  if (tokenizerVocabulary !== undefined && job.vocabulary !== undefined && job.vocabulary < tokenizerVocabulary)
    throw new ConfigError([
      `data.vocabulary is ${job.vocabulary}, but the tokenizer has ${tokenizerVocabulary} tokens; raise it, or leave it out`,
    ]);
  const options = { ...job, vocabulary: job.vocabulary ?? tokenizerVocabulary };
  if (job.onDisk === true) return filedData(job, options.vocabulary);
  const learned = loadTokenFile(file, options);
  const heldOut = testFile === undefined ? undefined : loadTokenFile(testFile, options);
  return {
    ...windowsOf(learned.tokens, job, heldOut?.tokens),
    predicts: "tokens",
    classes: Math.max(learned.vocabulary, heldOut?.vocabulary ?? 0),
  };
};
