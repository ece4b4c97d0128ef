import type { Model } from "@skein/models";
import { didYouMean, excerpt } from "@skein/tensor-core/backend";
import type { Architecture, Config, Opened, OpenOptions } from "./architecture.ts";
import { withNumLabels } from "./architectures/labels.ts";
import { architectures, otherModelTypes } from "./architectures/table.ts";
import { PretrainedError } from "./errors.ts";
import { requireUnquantised } from "./quantised.ts";

/**
 * Returns the model of a configuration, with the names of its parameters in files.
 *
 * @throws PretrainedError for an unsupported architecture or setting, and for quantized weights.
 * @example const { model } = openConfig(JSON.parse(text));
 */
export const openConfig = (config: Config, options: OpenOptions = {}): Opened => {
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
 * @throws PretrainedError like `loadPretrained` for configurations.
 * @example const model = modelOf(JSON.parse(await readFile("config.json", "utf8")));
 */
export const modelOf = (config: Config, options: OpenOptions = {}): Model => openConfig(config, options).model;

/**
 * Returns the configuration of the same model with a new classification head for `numClasses` classes, which replaces a
 * head of any type.
 *
 * @throws PretrainedError for an architecture without a classification head.
 */
export const withNewHead = (config: Config, numClasses: number): Config => {
  const { classifier } = architectureOf(config);
  if (classifier !== undefined) return { ...withNumLabels(config, numClasses), architectures: [classifier] };
  const classifiers = [...architectures].filter(([, architecture]) => architecture.classifier !== undefined);
  throw new PretrainedError(
    `config.json has model_type ${excerpt(config["model_type"])}, which has no classification head; use a checkpoint of ${classifiers.map(([name]) => name).join(", ")}`,
  );
};
