import { drawSamples, isFiled, sampleClasses, type Samples, takeRecords } from "@skein/data";
import type { DataSet } from "../task/task.ts";
import { isSequence } from "./validation-split.ts";

/**
 * At most `limit` samples. Of samples with a class each, a draw in proportion to the classes, the same in every run:
 * files are often sorted by class. Otherwise the first samples: those of a sequence continue each other.
 *
 * @param limit Absent: all samples.
 */
export const limitSamples = <Of extends Samples>(
  samples: Of,
  limit: number | undefined,
  { predicts }: Pick<DataSet, "predicts">,
): Of => {
  if (limit === undefined || limit >= samples.count) return samples;
  const all: Samples = samples;
  if (predicts === "classes" && !isFiled(all) && !isSequence({ train: all, predicts })) {
    const classes = sampleClasses(all);
    if (classes !== undefined) return drawSamples(all, limit, classes) as Samples as Of;
  }
  return takeRecords(samples, limit);
};
