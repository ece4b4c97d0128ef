import { existsSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "@skein/cli/node";
import { byteTokenizer, type Tokenizer } from "@skein/data";
import { loadTokenizer, tokenizerFile } from "@skein/data/node";
import { supportsKeyValueCache } from "@skein/job/node";
import type { Model } from "@skein/models";
import { loadPretrained } from "@skein/pretrained/node";
import { jobFile } from "../output-folder/output-folder.ts";
import { openSavedRun, type CheckpointChoice } from "../output-folder/saved-run.ts";

/** A causal model with its weights and its tokenizer. */
export interface TextModel {
  readonly model: Model;
  readonly params: unknown;
  readonly state: unknown;
  readonly tokenizer: Tokenizer;
  /** Maximum context length in tokens. */
  readonly contextLength: number;
  /**
   * Whether logits of a token can be computed from cached keys and values of earlier tokens (see `applyAfterPrefix`).
   * False if experts choose among all tokens, or if a user model may need the complete sequence.
   */
  readonly usesKeyValueCache: boolean;
}

/** Default context length in tokens: the context length of Llama 1. */
const defaultContext = 2048;

/** Values of `model_type` in config.json for causal models. */
export const causalKinds: readonly string[] = ["gpt2", "llama", "mistral", "qwen2"];

/**
 * Returns the maximum context length in tokens from the configuration of a model.
 * @throws ConfigError if the model does not predict the next token.
 */
const contextOf = (config: Readonly<Record<string, unknown>>, folder: string): number => {
  const kind = config["model_type"];
  if (!causalKinds.includes(String(kind)))
    throw new ConfigError([
      `${folder}: a ${String(kind)} does not generate text; name a model that does: ${causalKinds.join(", ")}, or a run of {kind: gpt}`,
    ]);
  const most = config["max_position_embeddings"] ?? config["n_positions"];
  return typeof most === "number" ? most : defaultContext;
};

/**
 * Returns the tokenizer in a folder. If the folder has no tokenizer and the model's vocabulary is as large as the byte
 * tokenizer's, returns the byte tokenizer. @throws ConfigError
 */
const tokenizerOf = (folder: string, vocabulary: unknown): Tokenizer => {
  if (existsSync(join(folder, tokenizerFile))) return loadTokenizer(folder, import.meta.url);
  if (vocabulary === byteTokenizer.vocabulary) return byteTokenizer;
  throw new ConfigError([
    `${folder} has no ${tokenizerFile}, so its ${String(vocabulary)} tokens are unknown; copy the tokenizer of the model into the folder`,
  ]);
};

const ofFolder = async (folder: string): Promise<TextModel> => {
  const { config, model, params, state } = await loadPretrained(folder);
  const contextLength = contextOf(config, folder);
  return {
    model,
    params,
    state,
    contextLength,
    usesKeyValueCache: true,
    tokenizer: tokenizerOf(folder, config["vocab_size"]),
  };
};

const ofRun = async (output: string, which: CheckpointChoice | undefined): Promise<TextModel> => {
  const { job, prepared, params, state } = await openSavedRun(output, which);
  const { model, data } = prepared;
  const { predicts, train } = data;
  if (predicts !== "bytes" && predicts !== "tokens")
    throw new ConfigError([
      `${output}: its model predicts ${predicts === "own" ? "outputs of its own" : predicts}, not text; name a run on text data`,
    ]);
  const tokenizerPath = "tokenizer" in job.data ? job.data.tokenizer : undefined;
  if (predicts === "tokens" && tokenizerPath === undefined)
    throw new ConfigError([
      `${output}: its data are tokens, but the job names no tokenizer to decode them; train on data: {kind: text, tokenizer}`,
    ]);
  return {
    model,
    params,
    state,
    usesKeyValueCache: supportsKeyValueCache(job, model),
    tokenizer: tokenizerPath === undefined ? byteTokenizer : loadTokenizer(tokenizerPath, import.meta.url),
    contextLength:
      job.model.kind === "pretrained" ? contextOf(job.model.config!, output) : train.fields["inputs"]!.shape[0]!,
  };
};

/**
 * Opens a model that can continue text: a run on text data, or a folder in Hugging Face format.
 *
 * @param which checkpoint of a run to open. Default: the newest checkpoint.
 * @throws ConfigError, CheckpointError, PretrainedError, DataError.
 */
export const openTextModel = async (folder: string, which?: CheckpointChoice): Promise<TextModel> => {
  if (existsSync(join(folder, jobFile))) return ofRun(folder, which);
  if (!existsSync(join(folder, "config.json")))
    throw new ConfigError([
      `${folder} is neither a run (it has no ${jobFile}) nor a checkpoint in Hugging Face's layout (no config.json); name the output folder of a run, such as runs/text/1, or such a checkpoint`,
    ]);
  return ofFolder(folder);
};
