import { bytesPerElement, elementCount, formatShape, type NdArray } from "@skein/tensor-core";
import { DataError } from "./errors.ts";
import { makeRecords, type Records } from "./records.ts";

/**
 * Samples from arrays, one per field, whose first dimension counts the samples. Without a copy: what is written into an
 * array later is what batches hold.
 *
 * @throws DataError for arrays of different counts, and for none.
 * @example const train = arrayRecords({ inputs: NdArray.from(features, [1000, 4]), labels: NdArray.from(classes,
 * [1000], "i32") });
 */
export const arrayRecords = (arrays: { readonly [field: string]: NdArray }): Records => {
  const [first, ...others] = Object.entries(arrays);
  if (first === undefined)
    throw new DataError("arrayRecords was given no arrays; give one for each field, such as inputs and labels");
  for (const [name, { shape }] of [first, ...others]) {
    if (shape.length === 0 || shape[0] !== first[1].shape[0])
      throw new DataError(
        `field "${name}" is ${formatShape(shape)}, field "${first[0]}" ${formatShape(first[1].shape)}; the first dimension counts the samples and must be the same in all`,
      );
  }
  return makeRecords(
    first[1].shape[0]!,
    Object.fromEntries(
      Object.entries(arrays).map(([name, array]) => {
        const shape = array.shape.slice(1);
        const strideBytes = elementCount(shape) * bytesPerElement[array.dtype];
        return [name, { bytes: array.bytes(), offsetBytes: 0, strideBytes, dtype: array.dtype, shape }];
      }),
    ),
  );
};
