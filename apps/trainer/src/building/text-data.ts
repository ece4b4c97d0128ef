import { filedWindows, splitText, textRecords, type Tokenizer } from "@skein/data";
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
import { InvariantError } from "@skein/tensor-core";
import { ConfigError } from "../errors.ts";
import type { DataJob, TextJob } from "../job/job.ts";
import type { DataSet, TrainingData } from "../task/task.ts";

type Text = Documents["text"];
type TokenJob = Extract<DataJob, { readonly kind: "tokens" }>;

/** Windows of a text and of the end of it, or of another. */
const windowsOf = (text: Text, { window, testFraction }: TextJob, held?: Text): Pick<DataSet, "train" | "test"> => {
  const { train, valid } = held === undefined ? splitText(text, testFraction) : { train: text, valid: held };
  return {
    train: textRecords(train, window, "the text to learn from"),
    test: textRecords(valid, window, "the text to judge by"),
  };
};

const predictedIn = (tokenizer: Tokenizer | undefined): Pick<DataSet, "predicts" | "classes"> =>
  tokenizer === undefined ? { predicts: "bytes", classes: 256 } : { predicts: "tokens", classes: tokenizer.vocabulary };

/** Windows of a text whose tokens are its bytes or those of a tokenizer. */
const windowsIn = (text: Text, job: TextJob, tokenizer: Tokenizer | undefined, held?: Text): DataSet => ({
  ...windowsOf(text, job, held),
  ...predictedIn(tokenizer),
});

const tokenizerOf = ({ tokenizer }: TextJob): Tokenizer | undefined =>
  tokenizer === undefined ? undefined : loadTokenizer(tokenizer, import.meta.url);

export const mobyDickData = async (job: TextJob): Promise<DataSet> => {
  const tokenizer = tokenizerOf(job);
  return windowsIn(await joinDocuments([loadMobyDick({ from: import.meta.url })], { tokenizer }), job, tokenizer);
};

/** Texts to judge by, which may lack the field of the others: a file of plain text has none. */
const heldTexts = (
  job: Extract<DataJob, { readonly kind: "text" }>,
  file: string | readonly string[],
  tokenizer: Tokenizer | undefined,
): DocumentOptions => ({ ...job, file, field: haveFields(file) ? job.field : undefined, tokenizer });

/** Windows of texts in a row, or of texts that come by. */
export const textData = async (job: Extract<DataJob, { readonly kind: "text" }>): Promise<TrainingData> => {
  const tokenizer = tokenizerOf(job);
  const { testFile, stream } = job;
  const held = testFile === undefined ? undefined : await loadDocuments(heldTexts(job, testFile, tokenizer));
  if (stream !== undefined) {
    if (held === undefined) throw new InvariantError("a stream of texts has none to judge by");
    const place = job.tokenizer === undefined ? undefined : { place: job.tokenizer, from: import.meta.url };
    const { train, remarks } = openTextStream({ ...job, ...stream, tokenizer: place });
    return {
      train,
      test: textRecords(held.text, job.window, "the text to judge by"),
      ...predictedIn(tokenizer),
      remarks: [...remarks, ...held.remarks],
    };
  }
  const { text, remarks } = await loadDocuments({ ...job, tokenizer });
  return {
    ...windowsIn(text, job, tokenizer, held?.text),
    remarks: [...remarks, ...(held?.remarks ?? []).map((remark) => `to judge by: ${remark}`)],
  };
};

/** Windows of tokens that stay in files. */
const filedData = (job: TokenJob, vocabulary: number | undefined): DataSet => {
  const { file, testFile, testFraction, window } = job;
  if (vocabulary === undefined)
    throw new ConfigError([
      "data.vocabulary is missing: with onDisk nobody looks for the greatest token before; give it, or tokenizer",
    ]);
  const learned = openTokenFile(file, { ...job, vocabulary });
  const held = testFile === undefined ? undefined : openTokenFile(testFile, { ...job, vocabulary });
  const cut = held === undefined ? Math.floor(learned.count * (1 - testFraction)) : learned.count;
  const rest = held === undefined ? { begin: cut, end: learned.count } : { begin: 0, end: held.count };
  return {
    train: filedWindows(learned, { begin: 0, end: cut }, window, "the text to learn from"),
    test: filedWindows(held ?? learned, rest, window, "the text to judge by"),
    predicts: "tokens",
    classes: vocabulary,
    remarks: ["tokens stay in their files, and are read when a batch needs them"],
  };
};

/** Windows of tokens that lie in files. */
export const tokenData = (job: TokenJob): DataSet => {
  const { file, testFile } = job;
  const ofTokenizer = tokenizerOf(job)?.vocabulary;
  if (ofTokenizer !== undefined && job.vocabulary !== undefined && job.vocabulary < ofTokenizer)
    throw new ConfigError([
      `data.vocabulary is ${job.vocabulary}, but the tokenizer has ${ofTokenizer} tokens; raise it, or leave it out`,
    ]);
  const how = { ...job, vocabulary: job.vocabulary ?? ofTokenizer };
  if (job.onDisk === true) return filedData(job, how.vocabulary);
  const learned = loadTokenFile(file, how);
  const held = testFile === undefined ? undefined : loadTokenFile(testFile, how);
  return {
    ...windowsOf(learned.tokens, job, held?.tokens),
    predicts: "tokens",
    classes: Math.max(learned.vocabulary, held?.vocabulary ?? 0),
  };
};
