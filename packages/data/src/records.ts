import { ArgumentError, bytesPerElement, type DType, elementCount, NdArray, type Shape } from "@skein/tensor-core";
import { hostArrayType } from "@skein/tensor-core/backend";
import { DataError } from "./errors.ts";

/** One field of every sample: sample i lies at byte `offsetBytes + i · strideBytes` of `bytes`. */
export interface Field {
  readonly bytes: Uint8Array;
  readonly offsetBytes: number;
  readonly strideBytes: number;
  readonly dtype: DType;
  /** Shape of one sample. */
  readonly shape: Shape;
}

/**
 * Samples as strided views of memory: images and labels side by side, or overlapping windows of one text.
 * Plain data, so that it can be posted to workers; over a SharedArrayBuffer all threads read one copy.
 */
export interface Records {
  readonly count: number;
  readonly fields: { readonly [name: string]: Field };
}

/** Arrays of one batch, `[batch, ...sample shape]` each. */
export type Batch = { readonly [name: string]: NdArray };

/** Bytes of one sample of a field. */
export const sampleBytes = (field: Field): number => elementCount(field.shape) * bytesPerElement[field.dtype];

/** @throws DataError when a field has fewer bytes than `count` samples take. */
export const makeRecords = (count: number, fields: Records["fields"]): Records => {
  for (const [name, field] of Object.entries(fields)) {
    const needed = count === 0 ? 0 : field.offsetBytes + (count - 1) * field.strideBytes + sampleBytes(field);
    if (field.bytes.length < needed)
      throw new DataError(
        `field "${name}" has ${field.bytes.length} bytes, but ${count} samples take ${needed}; give all of the data or a smaller count`,
      );
  }
  return { count, fields };
};

/** The first `count` samples; all of them when there are fewer. */
export const takeRecords = (records: Records, count: number): Records => ({
  count: Math.min(count, records.count),
  fields: records.fields,
});

/**
 * Cut samples in a training part and a validation part, the last `validFraction` of them, rounded down but one at
 * least. A cut, not a draw: neighbours in a file are often alike, and every run cuts in the same place. Both parts are
 * views of the same memory.
 *
 * @param validFraction in (0, 1).
 * @throws DataError when fewer than two samples leave one part empty.
 */
export const splitRecords = (
  records: Records,
  validFraction: number,
): { readonly train: Records; readonly valid: Records } => {
  if (!(validFraction > 0 && validFraction < 1))
    throw new ArgumentError(
      `a validation fraction of ${validFraction} leaves one part empty; use a number between 0 and 1, such as 0.1`,
    );
  if (records.count < 2)
    throw new DataError(
      `${records.count} samples cannot be cut in a training part and a validation part; give two samples at least`,
    );
  const cut = records.count - Math.max(1, Math.floor(records.count * validFraction));
  const fieldsFrom = Object.entries(records.fields).map(
    ([name, field]) => [name, { ...field, offsetBytes: field.offsetBytes + cut * field.strideBytes }] as const,
  );
  return {
    train: takeRecords(records, cut),
    valid: { count: records.count - cut, fields: Object.fromEntries(fieldsFrom) },
  };
};

/** Bytes that a batch of `size` samples takes in each field, in field order. */
export const batchLayout = (
  records: Records,
  size: number,
): { readonly offsets: readonly number[]; readonly totalBytes: number } => {
  let totalBytes = 0;
  const offsets = Object.values(records.fields).map((field) => {
    const offset = totalBytes;
    totalBytes += Math.ceil((size * sampleBytes(field)) / 8) * 8; // keeps every field aligned to its element
    return offset;
  });
  return { offsets, totalBytes };
};

/** Copy the samples `indices` into `target`, field after field as `batchLayout` says. */
export const writeBatch = (records: Records, indices: ArrayLike<number>, target: Uint8Array): void => {
  const { offsets } = batchLayout(records, indices.length);
  Object.values(records.fields).forEach((field, f) => {
    const bytes = sampleBytes(field);
    for (let i = 0; i < indices.length; i++) {
      const from = field.offsetBytes + indices[i]! * field.strideBytes;
      target.set(field.bytes.subarray(from, from + bytes), offsets[f]! + i * bytes);
    }
  });
};

/** The arrays of a written batch, without a copy. */
export const viewBatch = (records: Records, size: number, bytes: Uint8Array): Batch => {
  const { offsets } = batchLayout(records, size);
  return Object.fromEntries(
    Object.entries(records.fields).map(([name, { dtype, shape }], f) => {
      const batchShape = [size, ...shape];
      return [
        name,
        new NdArray(
          dtype,
          batchShape,
          new hostArrayType[dtype](bytes.buffer, bytes.byteOffset + offsets[f]!, elementCount(batchShape)),
        ),
      ];
    }),
  );
};

/** Gather the samples `indices` into new arrays. */
export const gatherBatch = (records: Records, indices: ArrayLike<number>): Batch => {
  const bytes = new Uint8Array(batchLayout(records, indices.length).totalBytes);
  writeBatch(records, indices, bytes);
  return viewBatch(records, indices.length, bytes);
};
