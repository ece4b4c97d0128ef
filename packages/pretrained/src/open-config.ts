import type { Model } from "@skein/models";
import { didYouMean, excerpt } from "@skein/tensor-core/backend";
import type { Architecture, Config, Opened, OpenConfigOptions } from "./architecture.ts";
import { withNumLabels } from "./architectures/labels.ts";
import { architectures, otherModelTypes } from "./architectures/table.ts";
import { PretrainedError } from "./errors.ts";
import { requireUnquantised } from "./quantised.ts";

/**
 * Returns the model of a configuration, with the names of its parameters in files.
 *
 * @throws PretrainedError if the architecture or a configuration field is not supported, or if the weights are
 * quantized.
 * @example const { model } = openConfig(JSON.parse(text));
 */
export const openConfig = (config: Config, options: OpenConfigOptions = {}): Opened => {
  const architecture = architectureOf(config);
  requireUnquantised(config);
  return architecture.open(config, options);
};

const architectureOf = (config: Config): Architecture => {
  const modelType = config["model_type"];
  const architecture = typeof modelType === "string" ? architectures.get(modelType) : undefined;
  if (architecture !== undefined) return architecture;
  const known = [...architectures.keys()];
  const isMistyped = typeof modelType === "string" && !otherModelTypes.has(modelType.toLowerCase());
  const suggestion = isMistyped ? didYouMean(modelType, known) : undefined;
  throw new PretrainedError(
    `config.json has model_type ${excerpt(modelType)}, but supported are ${known.join(", ")}; ${suggestion === undefined ? "use a checkpoint of a supported type" : `did you mean ${suggestion}?`}`,
  );
};

/**
 * Returns the model of a configuration, for training from scratch.
 *
 * @throws PretrainedError if the architecture or a configuration field is not supported.
 * @example
 * ```ts
 * const config = {
 *   model_type: "llama", vocab_size: 9, hidden_size: 8, intermediate_size: 12, num_hidden_layers: 1,
 *   num_attention_heads: 2,
 * };
 * const { params } = await evaluate(modelOf(config).init, referenceBackend())(randomKey(1));
 * console.log(Object.keys(params as object)); // ['blocks', 'embedding_VD', 'finalNorm', 'head_DV']
 * ```
 */
export const modelOf = (config: Config, options: OpenConfigOptions = {}): Model => openConfig(config, options).model;

/**
 * Returns the configuration of the same model with a new classification head for `numClasses` classes, which replaces a
 * head of any type.
 *
 * @throws PretrainedError if the architecture has no classification head.
 * @example
 * ```ts
 * const config = { model_type: "bert", architectures: ["BertModel"], hidden_size: 8 };
 * console.log(withNewHead(config, 3)["architectures"]); // ['BertForSequenceClassification']
 * ```
 */
export const withNewHead = (config: Config, numClasses: number): Config => {
  const { classifier } = architectureOf(config);
  if (classifier !== undefined) return { ...withNumLabels(config, numClasses), architectures: [classifier] };
  const classifiers = [...architectures].filter(([, architecture]) => architecture.classifier !== undefined);
  throw new PretrainedError(
    `config.json has model_type ${excerpt(config["model_type"])}, which has no classification head; use a checkpoint of ${classifiers.map(([name]) => name).join(", ")}`,
  );
};
