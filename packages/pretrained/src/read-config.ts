import { z } from "zod";
import type { Config } from "./architecture.ts";
import { PretrainedError } from "./errors.ts";

/** A size: a whole number from 1. */
export const size: z.ZodNumber = z.number().int().positive();

/** A number of layers. A model of a configuration is made before its tensors are looked at: no model has more. */
export const layerCount: z.ZodNumber = size.max(10_000);

/**
 * The fields of a configuration that a model reads.
 *
 * @throws PretrainedError that lists every field that is missing or not as the model has it.
 */
export const readFields = <Schema extends z.ZodType>(schema: Schema, config: Config): z.infer<Schema> => {
  const { success, data, error } = schema.safeParse(config);
  if (success) return data;
  const faults = error.issues.map(({ path, message }) => `${path.join(".") || "the whole"}: ${message}`);
  throw new PretrainedError(
    `config.json of model_type ${JSON.stringify(config["model_type"])} is not one that we compute: ${faults.join("; ")}; take a checkpoint of the same architecture without these settings, or mend the file`,
  );
};
