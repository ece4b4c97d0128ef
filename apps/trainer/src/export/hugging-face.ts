import { copyFile, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { savePretrained, type SaveOptions } from "@skein/pretrained/node";
import type { NdArray, Tensor } from "@skein/tensor-core";
import type { MapTree } from "@skein/tensor-core";
import { ConfigError } from "../errors.ts";
import type { SavedRun } from "../checkpoint/saved-run.ts";

/** What goes along with weights: how texts and images become inputs, and how others generate. */
const companions: readonly string[] = [
  "added_tokens.json",
  "chat_template.jinja",
  "generation_config.json",
  "merges.txt",
  "preprocessor_config.json",
  "special_tokens_map.json",
  "tokenizer.json",
  "tokenizer.model",
  "tokenizer_config.json",
  "vocab.json",
  "vocab.txt",
];

/** Copy what lies in a folder of these and is not in the other. @returns their names. */
const copyCompanions = async (from: string, to: string): Promise<string[]> => {
  const [names, there] = await Promise.all([readdir(from).catch(() => []), readdir(to)]);
  const copied = names.filter((name) => companions.includes(name) && !there.includes(name)).sort();
  for (const name of copied) await copyFile(join(from, name), join(to, name));
  return copied;
};

/**
 * Write what a run has made of a checkpoint of Hugging Face's as such a checkpoint: `config.json`, safetensors, and the
 * files of the tokenizer that it was trained with, else those of the folder that it began from.
 *
 * @returns the names of the files.
 * @throws ConfigError for a run of another model, PretrainedError where a checkpoint lies in `output` already.
 */
export const exportHuggingFace = async (
  { job, params, state }: SavedRun,
  output: string,
  options: SaveOptions = {},
): Promise<string[]> => {
  const { model, data } = job;
  if (model.kind !== "pretrained")
    throw new ConfigError([
      `--format huggingface: the model is of kind ${model.kind}, for which Hugging Face's libraries have no class; export runs of {kind: pretrained}, also with weights: none`,
    ]);
  type Arrays = MapTree<unknown, Tensor, NdArray>;
  await savePretrained(output, { config: model.config!, params: params as Arrays, state: state as Arrays }, options);
  const tokenizer = "tokenizer" in data ? data.tokenizer : undefined;
  if (tokenizer !== undefined)
    await copyCompanions(tokenizer.endsWith(".json") ? dirname(tokenizer) : tokenizer, output);
  await copyCompanions(model.folder, output);
  return (await readdir(output)).sort();
};
