import { ConfigError } from "@skein/cli/node";
import {
  holdOut,
  isEncoded,
  isFileWindows,
  type Records,
  type Samples,
  sampleBytes,
  sampleClasses,
  splitRecords,
} from "@skein/data";
import type { DataJob } from "@skein/job/node";
import type { DataSet } from "../task/task.ts";

/** Whether adjacent samples share bytes, as overlapping windows of a time series do. */
const overlaps = ({ fields }: Records): boolean =>
  Object.values(fields).some((field) => field.strideBytes > 0 && field.strideBytes < sampleBytes(field));

/**
 * Whether adjacent samples continue each other, so that a random draw would leak training data into the validation set.
 */
export const isSequence = ({ train, predicts }: Pick<DataSet, "train" | "predicts">): boolean =>
  predicts === "bytes" || predicts === "tokens" || isFileWindows(train) || (!isEncoded(train) && overlaps(train));

/**
 * Holds out validation samples, which replace the test samples.
 *
 * @returns training and validation samples: the beginning and the end of a sequence, or a random draw stratified by
 * class.
 * @throws ConfigError if samples would be drawn at random from a token file that stays on disk. @throws DataError if
 * there are fewer than two samples.
 */
export const validationSplit = <Of extends Samples>(
  data: DataSet<Of>,
  { validationFraction, validationFrom = isSequence(data) ? "end" : "draw" }: DataJob,
): { readonly train: Of; readonly test: Of } => {
  const samples: Samples = data.train;
  if (validationFrom === "end") {
    const { train, valid } = splitRecords<Of>(data.train, validationFraction!);
    return { train, test: valid };
  }
  if (isFileWindows(samples))
    throw new ConfigError([
      "data.validationFrom: draw is not possible for a token file on disk, because its windows are read in order; use end, or leave onDisk out",
    ]);
  const classes = data.predicts === "classes" ? sampleClasses(samples) : undefined;
  return holdOut(samples, validationFraction!, { name: "data", classes }) as {
    readonly train: Samples;
    readonly test: Samples;
  } as { readonly train: Of; readonly test: Of };
};
