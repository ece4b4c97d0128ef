import { z } from "zod";
import type { Config } from "../architecture.ts";

/** Schemas of the fields that determine the number of classes. */
export const labelFields: {
  readonly num_labels: z.ZodOptional<z.ZodNumber>;
  readonly id2label: z.ZodOptional<z.ZodRecord<z.ZodString, z.ZodUnknown>>;
} = { num_labels: z.number().int().positive().optional(), id2label: z.record(z.string(), z.unknown()).optional() };

/** Returns the configuration with another number of classes, and without class names. */
export const withNumLabels = (config: Config, numClasses: number): Config => {
  const { id2label: _, label2id: __, ...others } = config;
  return { ...others, num_labels: numClasses };
};

/** Returns the number of classes. Default: 2, as in transformers. */
export const numLabels = ({
  num_labels: given,
  id2label,
}: {
  readonly num_labels?: number | undefined;
  readonly id2label?: object | undefined;
}): number => given ?? (id2label === undefined ? 2 : Object.keys(id2label).length);
