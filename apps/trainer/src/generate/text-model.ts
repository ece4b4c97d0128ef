import { existsSync } from "node:fs";
import { join } from "node:path";
import { byteTokenizer, type Tokenizer } from "@skein/data";
import { loadTokenizer, tokenizerFile } from "@skein/data/node";
import type { Model } from "@skein/models";
import { loadPretrained } from "@skein/pretrained/node";
import { ConfigError } from "../errors.ts";
import { jobFile } from "../run/output-folder.ts";
import { openSavedRun, type CheckpointChoice } from "../checkpoint/saved-run.ts";
import { goesOnFromKeys } from "./goes-on-from-keys.ts";

/** A causal model with what makes text of its tokens. */
export interface TextModel {
  readonly model: Model;
  readonly params: unknown;
  readonly state: unknown;
  readonly tokenizer: Tokenizer;
  /** Most tokens that it looks at. */
  readonly contextLength: number;
  /**
   * Whether each token follows from keys and values of those before it (see `applyBehind`). Not where experts choose
   * among all tokens, nor where a user's model may look at a sequence as a whole.
   */
  readonly goesOn: boolean;
}

/** Where a configuration does not say it: what Llama 1 was trained with. */
const defaultContext = 2048;

/** By `model_type`. */
export const causalKinds: readonly string[] = ["gpt2", "llama", "mistral", "qwen2"];

/** Most positions of a configuration. @throws ConfigError for a model that does not predict what follows. */
const contextOf = (config: Readonly<Record<string, unknown>>, place: string): number => {
  const kind = config["model_type"];
  if (!causalKinds.includes(String(kind)))
    throw new ConfigError([
      `${place}: a ${String(kind)} does not predict what follows a text; name a model that does: ${causalKinds.join(", ")}, or a run of {kind: gpt}`,
    ]);
  const most = config["max_position_embeddings"] ?? config["n_positions"];
  return typeof most === "number" ? most : defaultContext;
};

/** The tokenizer of a folder, or bytes where its model knows just as many tokens. @throws ConfigError */
const tokenizerOf = (folder: string, vocabulary: unknown): Tokenizer => {
  if (existsSync(join(folder, tokenizerFile))) return loadTokenizer(folder, import.meta.url);
  if (vocabulary === byteTokenizer.vocabulary) return byteTokenizer;
  throw new ConfigError([
    `${folder} has no ${tokenizerFile}, so nothing is known of its ${String(vocabulary)} tokens; copy the one that the model was trained with into it`,
  ]);
};

const ofFolder = async (folder: string): Promise<TextModel> => {
  const { config, model, params, state } = await loadPretrained(folder);
  const contextLength = contextOf(config, folder);
  return { model, params, state, contextLength, goesOn: true, tokenizer: tokenizerOf(folder, config["vocab_size"]) };
};

const ofRun = async (output: string, which: CheckpointChoice | undefined): Promise<TextModel> => {
  const { job, prepared, params, state } = await openSavedRun(output, which);
  const { model, data } = prepared;
  const { predicts, train } = data;
  if (predicts !== "bytes" && predicts !== "tokens")
    throw new ConfigError([
      `${output}: its model predicts ${predicts === "own" ? "what its own loss says" : predicts}, and no text; name a run on data of text`,
    ]);
  const place = "tokenizer" in job.data ? job.data.tokenizer : undefined;
  if (predicts === "tokens" && place === undefined)
    throw new ConfigError([
      `${output}: its data is of tokens, but the job names no tokenizer, so they make no text; train on data: {kind: text, tokenizer}`,
    ]);
  return {
    model,
    params,
    state,
    goesOn: goesOnFromKeys(job, model),
    tokenizer: place === undefined ? byteTokenizer : loadTokenizer(place, import.meta.url),
    contextLength:
      job.model.kind === "pretrained" ? contextOf(job.model.config!, output) : train.fields["inputs"]!.shape[0]!,
  };
};

/**
 * Open what can continue a text: a run on data of text, or a folder in Hugging Face's layout.
 *
 * @param step of a run's checkpoint. Default: the newest.
 * @throws ConfigError, CheckpointError, PretrainedError, DataError.
 */
export const openTextModel = async (place: string, which?: CheckpointChoice): Promise<TextModel> => {
  if (existsSync(join(place, jobFile))) return ofRun(place, which);
  if (!existsSync(join(place, "config.json")))
    throw new ConfigError([
      `${place} is neither a run (it has no ${jobFile}) nor a checkpoint in Hugging Face's layout (no config.json); name the output folder of a run, such as runs/text/1, or such a checkpoint`,
    ]);
  return ofFolder(place);
};
