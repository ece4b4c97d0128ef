import { z } from "zod";

/** Fields that say how many classes there are. */
export const labelFields: {
  readonly num_labels: z.ZodOptional<z.ZodNumber>;
  readonly id2label: z.ZodOptional<z.ZodRecord<z.ZodString, z.ZodUnknown>>;
} = { num_labels: z.number().int().positive().optional(), id2label: z.record(z.string(), z.unknown()).optional() };

/** Two where nothing is said, as transformers has it. */
export const numLabels = ({
  num_labels: given,
  id2label,
}: {
  readonly num_labels?: number | undefined;
  readonly id2label?: object | undefined;
}): number => given ?? (id2label === undefined ? 2 : Object.keys(id2label).length);
