import { copyFile, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ConfigError } from "@skein/cli/node";
import { savePretrained, type SaveOptions } from "@skein/pretrained/node";
import { namesOf, type TrainingData } from "@skein/step/node";
import type { NdArray, Tensor } from "@skein/tensor-core";
import type { MapTree } from "@skein/tensor-core";
import { exportedImages } from "./exported-images.ts";
import type { SavedRun } from "../output-folder/saved-run.ts";

/**
 * Name of the file with the image preprocessing. If Skein did not decode the images of the run, this file is copied
 * from the original folder.
 */
const processorFile = "preprocessor_config.json";

/**
 * Names of files that are stored next to the weights of a checkpoint and configure text preprocessing, image
 * preprocessing and text generation.
 */
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

/** Copies the files named in `wanted` from one folder to another. Existing files are not replaced. */
const copyCompanions = async (from: string, to: string, wanted: readonly string[] = companions): Promise<void> => {
  const [names, there] = await Promise.all([readdir(from).catch(() => []), readdir(to)]);
  for (const name of names)
    if (wanted.includes(name) && !there.includes(name)) await copyFile(join(from, name), join(to, name));
};

/**
 * Returns the class names of the run in the format of config.json, to replace the class names of the original
 * checkpoint.
 */
const labelConfig = (data: TrainingData): object => {
  const names = data.predicts === "classes" ? namesOf(data) : undefined;
  if (names === undefined) return {};
  return {
    id2label: Object.fromEntries(names.map((name, number) => [number, name])),
    label2id: Object.fromEntries(names.map((name, number) => [name, number])),
  };
};

/**
 * Writes the fine-tuned model of a run as a Hugging Face checkpoint: `config.json`, safetensors,
 * `preprocessor_config.json` with the image preprocessing, and tokenizer files. The tokenizer files are the files used
 * in training, or the files of the original folder if the run used no tokenizer.
 *
 * @returns the names of the written files, and remarks for the user.
 * @throws ConfigError if the run's model is not pretrained; PretrainedError if `output` already contains a checkpoint.
 */
export const exportHuggingFace = async (
  { job, prepared, params, state }: SavedRun,
  output: string,
  options: SaveOptions = {},
): Promise<{ readonly files: readonly string[]; readonly remarks: readonly string[] }> => {
  const { model, data } = job;
  if (model.kind !== "pretrained")
    throw new ConfigError([
      `--format huggingface: the model is of kind ${model.kind}, which Hugging Face's libraries do not support; export runs of {kind: pretrained}, also with weights: none`,
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
  // The preprocessing in the original folder may differ from the run's preprocessing.
  const others = images === undefined ? companions : companions.filter((name) => name !== processorFile);
  await copyCompanions(model.folder, output, others);
  return { files: (await readdir(output)).sort(), remarks: images?.remarks ?? [] };
};
