import { ArgumentError } from "@skein/tensor-core";
import { isEncoded, isFiled, type Samples } from "./encoded-records.ts";
import { DataError } from "./errors.ts";
import { lengthOf } from "./filed-windows.ts";
import type { Records } from "./records.ts";

/** The first `count` samples; all of them when there are fewer. */
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

/** All samples but the first `count`. */
const afterFirst = (samples: Samples, count: number): Samples => {
  const left = samples.count - count;
  if (isEncoded(samples))
    return {
      ...samples,
      count: left,
      stored: movedBy(count, samples.stored),
      firstImage: samples.firstImage + count,
    };
  if (!isFiled(samples)) return { ...samples, count: left, fields: movedBy(count, samples.fields) };
  return { ...samples, count: left, firstToken: samples.firstToken + count * lengthOf(samples) };
};

/**
 * Cut samples in a training part and a validation part, the last `validFraction` of them, rounded down but one at
 * least. A cut, not a draw: neighbours in a file are often alike, and every run cuts in the same place. Both parts are
 * views of the same memory.
 *
 * @param validFraction in (0, 1).
 * @throws DataError when fewer than two samples leave one part empty.
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
      `${records.count} samples cannot be cut in a training part and a validation part; give two samples at least`,
    );
  const cut = records.count - Math.max(1, Math.floor(records.count * validFraction));
  return { train: takeRecords(records, cut), valid: afterFirst(records, cut) as Some };
};
