import { z } from "zod";
import type { Config } from "./architecture.ts";
import { PretrainedError } from "./errors.ts";

/** Schema of a size: a positive integer. */
export const size: z.ZodNumber = z.number().int().positive();

/**
 * Schema of a number of layers. The maximum limits the cost of building the model, which happens before tensors are
 * read.
 */
export const layerCount: z.ZodNumber = size.max(10_000);

/**
 * Reads the fields of a configuration that a model needs.
 *
 * @throws PretrainedError that lists all missing or unsupported fields.
 */
export const readFields = <Schema extends z.ZodType>(schema: Schema, config: Config): z.infer<Schema> => {
  const { success, data, error } = schema.safeParse(config);
  if (success) return data;
  const faults = error.issues.map(({ path, message }) => `${path.join(".") || "the whole"}: ${message}`);
  throw new PretrainedError(
    `config.json of model_type ${JSON.stringify(config["model_type"])} is not supported: ${faults.join("; ")}; use a checkpoint of the same architecture without these settings, or correct the file`,
  );
};
