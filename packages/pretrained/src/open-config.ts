import type { Model } from "@skein/models";
import { didYouMean, excerpt } from "@skein/tensor-core/backend";
import type { Config, Opened, OpenOptions } from "./architecture.ts";
import { architectures } from "./architectures/table.ts";
import { PretrainedError } from "./errors.ts";

/**
 * The model of a configuration, with the names that its parameters have in files.
 *
 * @throws PretrainedError for an architecture or a setting that we do not have.
 * @example const { model } = openConfig(JSON.parse(text));
 */
export const openConfig = (config: Config, options: OpenOptions = {}): Opened => {
  const modelType = config["model_type"];
  const architecture = typeof modelType === "string" ? architectures.get(modelType) : undefined;
  if (architecture !== undefined) return architecture.open(config, options);
  const known = [...architectures.keys()];
  const meant = typeof modelType === "string" ? didYouMean(modelType, known) : undefined;
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
