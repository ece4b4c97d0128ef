import { copyFile, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { savePretrained, type SaveOptions } from "@skein/pretrained/node";
import type { NdArray, Tensor } from "@skein/tensor-core";
import type { MapTree } from "@skein/tensor-core";
import { ConfigError } from "../errors.ts";
import { namesOf } from "../building/class-names.ts";
import type { TrainingData } from "../task/task.ts";
import { exportedImages } from "./exported-images.ts";
import type { SavedRun } from "../output-folder/saved-run.ts";

/** How images become inputs, where the run did not say it: of data of another origin. */
const processorFile = "preprocessor_config.json";

/** What goes along with weights: how texts and images become inputs, and how others generate. */
const companions: readonly string[] = [
  "added_tokens.json",
  "chat_template.jinja",
  "generation_config.json",
  "merges.txt",
  processorFile,
  "special_tokens_map.json",
  "tokenizer.json",
  "tokenizer.model",
  "tokenizer_config.json",
  "vocab.json",
  "vocab.txt",
];

/** Copy what lies in a folder of these and is not in the other. */
const copyCompanions = async (from: string, to: string, wanted: readonly string[] = companions): Promise<void> => {
  const [names, there] = await Promise.all([readdir(from).catch(() => []), readdir(to)]);
  for (const name of names)
    if (wanted.includes(name) && !there.includes(name)) await copyFile(join(from, name), join(to, name));
};

/** Names of the run's classes as config.json has them: what a checkpoint called them before does not hold any more. */
const labelConfig = (data: TrainingData): object => {
  const names = data.predicts === "classes" ? namesOf(data) : undefined;
  if (names === undefined) return {};
  return {
    id2label: Object.fromEntries(names.map((name, number) => [number, name])),
    label2id: Object.fromEntries(names.map((name, number) => [name, number])),
  };
};

/**
 * Write what a run has made of a checkpoint of Hugging Face's as such a checkpoint: `config.json`, safetensors,
 * `preprocessor_config.json` that says how its images were made, and the files of the tokenizer that it was trained
 * with, else those of the folder that it began from.
 *
 * @returns the names of the files, and what people should know of them.
 * @throws ConfigError for a run of another model, PretrainedError where a checkpoint lies in `output` already.
 */
export const exportHuggingFace = async (
  { job, prepared, params, state }: SavedRun,
  output: string,
  options: SaveOptions = {},
): Promise<{ readonly files: readonly string[]; readonly remarks: readonly string[] }> => {
  const { model, data } = job;
  if (model.kind !== "pretrained")
    throw new ConfigError([
      `--format huggingface: the model is of kind ${model.kind}, for which Hugging Face's libraries have no class; export runs of {kind: pretrained}, also with weights: none`,
    ]);
  type Arrays = MapTree<unknown, Tensor, NdArray>;
  const images = exportedImages(data, prepared.data.train.fields["inputs"]);
  const weights = {
    config: { ...model.config!, ...labelConfig(prepared.data) },
    params: params as Arrays,
    state: state as Arrays,
  };
  await savePretrained(output, { ...weights, imageProcessor: images?.processor }, options);
  const tokenizer = "tokenizer" in data ? data.tokenizer : undefined;
  if (tokenizer !== undefined)
    await copyCompanions(tokenizer.endsWith(".json") ? dirname(tokenizer) : tokenizer, output);
  // what the folder says of images need not be what the run did with its own
  const others = images === undefined ? companions : companions.filter((name) => name !== processorFile);
  await copyCompanions(model.folder, output, others);
  return { files: (await readdir(output)).sort(), remarks: images?.remarks ?? [] };
};
