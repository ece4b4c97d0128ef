import type { Model } from "@skein/models";
import { didYouMean, excerpt } from "@skein/tensor-core/backend";
import type { Architecture, Config, Opened, OpenOptions } from "./architecture.ts";
import { withNumLabels } from "./architectures/labels.ts";
import { architectures, otherModelTypes } from "./architectures/table.ts";
import { PretrainedError } from "./errors.ts";
import { requireUnquantised } from "./quantised.ts";

/**
 * The model of a configuration, with the names that its parameters have in files.
 *
 * @throws PretrainedError for an architecture or a setting that we do not have, and for quantised weights.
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
  const meant = isMistyped ? didYouMean(modelType, known) : undefined;
  throw new PretrainedError(
    `config.json is of model_type ${excerpt(modelType)}, but there are ${known.join(", ")}; ${meant === undefined ? "take a checkpoint of one of them" : `did you mean ${meant}?`}`,
  );
};

/**
 * The model of a configuration, to train it from the start.
 *
 * @throws PretrainedError as `loadPretrained` does for configurations.
 * @example const model = modelOf(JSON.parse(await readFile("config.json", "utf8")));
 */
export const modelOf = (config: Config, options: OpenOptions = {}): Model => openConfig(config, options).model;

/**
 * The configuration of the same model with a head that tells so many classes, whatever its head was.
 *
 * @throws PretrainedError for an architecture that predicts no classes.
 */
export const withNewHead = (config: Config, numClasses: number): Config => {
  const { classifier } = architectureOf(config);
  if (classifier !== undefined) return { ...withNumLabels(config, numClasses), architectures: [classifier] };
  const able = [...architectures].filter(([, architecture]) => architecture.classifier !== undefined);
  throw new PretrainedError(
    `config.json is of model_type ${excerpt(config["model_type"])}, which has no head for classes; take a checkpoint of ${able.map(([name]) => name).join(", ")}`,
  );
};
