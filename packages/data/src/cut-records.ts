import { ArgumentError } from "@skein/tensor-core";
import { isEncoded, isFileWindows, type Samples } from "./encoded-records.ts";
import { DataError } from "./errors.ts";
import { lengthOf } from "./file-windows.ts";
import type { Records } from "./records.ts";

/**
 * Returns the first `count` samples, or all samples if there are fewer.
 *
 * @example
 * ```ts
 * const records = arrayRecords({ inputs: NdArray.from([1, 2, 3, 4], [4, 1]) });
 * console.log(takeRecords(records, 2).count); // 2
 * ```
 */
export const takeRecords = <Some extends Samples>(records: Some, count: number): Some => ({
  ...records,
  count: Math.min(count, records.count),
});

const movedBy = (count: number, fields: Records["fields"]): Records["fields"] =>
  Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      { ...field, offsetBytes: field.offsetBytes + count * field.strideBytes },
    ]),
  );

/** Returns all samples except the first `count`. */
const afterFirst = (samples: Samples, count: number): Samples => {
  const left = samples.count - count;
  if (isEncoded(samples))
    return {
      ...samples,
      count: left,
      stored: movedBy(count, samples.stored),
      firstImage: samples.firstImage + count,
    };
  if (!isFileWindows(samples)) return { ...samples, count: left, fields: movedBy(count, samples.fields) };
  return { ...samples, count: left, firstToken: samples.firstToken + count * lengthOf(samples) };
};

/**
 * Splits samples into a training part and a validation part without shuffling. The validation part is the last
 * `validFraction` of the samples, rounded down, at least one sample. The split is not random, because neighboring
 * samples in a file are often similar, and all runs must split at the same index. Both parts are views of the same
 * memory.
 *
 * @param validFraction Fraction of the samples, in (0, 1).
 * @throws DataError if there are fewer than two samples.
 * @example
 * ```ts
 * const records = arrayRecords({ inputs: NdArray.from([1, 2, 3, 4], [4, 1]) });
 * const { train, valid } = splitRecords(records, 0.25);
 * console.log(train.count, valid.count); // 3 1
 * ```
 */
export const splitRecords = <Some extends Samples>(
  records: Some,
  validFraction: number,
): { readonly train: Some; readonly valid: Some } => {
  if (!(validFraction > 0 && validFraction < 1))
    throw new ArgumentError(
      `a validation fraction of ${validFraction} leaves one part empty; use a number between 0 and 1, such as 0.1`,
    );
  if (records.count < 2)
    throw new DataError(
      `${records.count} samples cannot be split into a training part and a validation part; provide at least two samples`,
    );
  const cut = records.count - Math.max(1, Math.floor(records.count * validFraction));
  return { train: takeRecords(records, cut), valid: afterFirst(records, cut) as Some };
};
