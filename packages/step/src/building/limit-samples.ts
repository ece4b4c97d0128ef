import { drawSamples, isFileWindows, sampleClasses, type Samples, takeRecords } from "@skein/data";
import type { DataSet } from "../task/task.ts";
import { isSequence } from "./validation-split.ts";

/**
 * Returns at most `limit` samples. Samples with one class per sample are drawn at random, stratified by class, with the
 * same draw in every run, because files are often sorted by class. All other samples are taken from the beginning,
 * because consecutive samples of a sequence belong together.
 *
 * @param limit maximum number of samples. Absent: all samples.
 */
export const limitSamples = <Of extends Samples>(
  samples: Of,
  limit: number | undefined,
  { predicts }: Pick<DataSet, "predicts">,
): Of => {
  if (limit === undefined || limit >= samples.count) return samples;
  const all: Samples = samples;
  if (predicts === "classes" && !isFileWindows(all) && !isSequence({ train: all, predicts })) {
    const classes = sampleClasses(all);
    if (classes !== undefined) return drawSamples(all, limit, classes) as Samples as Of;
  }
  return takeRecords(samples, limit);
};
