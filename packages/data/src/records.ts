import { bytesPerElement, type DType, elementCount, NdArray, type Shape, type TensorSpec } from "@skein/tensor-core";
import { hostArrayType } from "@skein/tensor-core/backend";
import { DataError } from "./errors.ts";

/** One field of all samples. Sample i begins at byte `offsetBytes + i · strideBytes` of `bytes`. */
export interface Field {
  readonly bytes: Uint8Array;
  readonly offsetBytes: number;
  readonly strideBytes: number;
  readonly dtype: DType;
  /** Shape of one sample. */
  readonly shape: Shape;
}

/**
 * Samples as strided views of memory, such as separate images and labels, or overlapping windows of one text. Plain
 * data, so that it can be posted to workers. With a SharedArrayBuffer, all threads share one copy.
 */
export interface Records {
  readonly count: number;
  /**
   * Fields by path in the tree of a sample, see `batchTree`. In most data sets a path is a single name, such as
   * `inputs`.
   */
  readonly fields: { readonly [path: string]: Field };
}

/** Number of samples, and tensor specs of one sample, which determine the batch layout. */
export interface SampleSpecs {
  readonly count: number;
  readonly fields: { readonly [name: string]: TensorSpec };
}

/** Arrays of one batch, [batch, ...sample shape], by field path. `batchTree` converts them to a tree. */
export type Batch = { readonly [path: string]: NdArray };

/**
 * Returns the size in bytes of one sample of a field.
 *
 * @example
 * ```ts
 * console.log(sampleBytes({ dtype: "f32", shape: [28, 28] })); // 3136
 * ```
 */
export const sampleBytes = (field: TensorSpec): number => elementCount(field.shape) * bytesPerElement[field.dtype];

/**
 * Creates records. @throws DataError if a field has fewer bytes than `count` samples need.
 *
 * @example
 * ```ts
 * const bytes = new Uint8Array([1, 2, 3, 4]);
 * const field = { dtype: "u8", shape: [2], bytes, offsetBytes: 0, strideBytes: 2 } as const;
 * console.log(byteRecords(2, { inputs: field }).count); // 2
 * ```
 */
export const byteRecords = (count: number, fields: Records["fields"]): Records => {
  for (const [name, field] of Object.entries(fields)) {
    const needed = count === 0 ? 0 : field.offsetBytes + (count - 1) * field.strideBytes + sampleBytes(field);
    if (field.bytes.length < needed)
      throw new DataError(
        `field "${name}" has ${field.bytes.length} bytes, but ${count} samples take ${needed}; give all of the data or a smaller count`,
      );
  }
  return { count, fields };
};

/**
 * Returns the byte offsets of the fields in a batch of `size` samples, which stores one field after the other, and the
 * total size in bytes.
 */
export const batchLayout = (
  records: SampleSpecs,
  size: number,
): { readonly offsets: Readonly<Record<string, number>>; readonly totalBytes: number } => {
  let totalBytes = 0;
  const offsets = Object.entries(records.fields).map(([name, field]) => {
    const offset = totalBytes;
    totalBytes += Math.ceil((size * sampleBytes(field)) / 8) * 8; // keeps each field aligned to its element size
    return [name, offset] as const;
  });
  return { offsets: Object.fromEntries(offsets), totalBytes };
};

/** Copies sample `index` of a field to byte offset `at` of `target`. */
export const copySample = (field: Field, index: number, target: Uint8Array, at: number): void => {
  const from = field.offsetBytes + index * field.strideBytes;
  target.set(field.bytes.subarray(from, from + sampleBytes(field)), at);
};

/** Copies the samples `indices` into `target`, in the layout of `batchLayout`. */
export const writeBatch = (records: Records, indices: ArrayLike<number>, target: Uint8Array): void => {
  const { offsets } = batchLayout(records, indices.length);
  for (const [name, field] of Object.entries(records.fields)) {
    const bytes = sampleBytes(field);
    for (let i = 0; i < indices.length; i++) copySample(field, indices[i]!, target, offsets[name]! + i * bytes);
  }
};

/** Returns the arrays of a batch that was written to `bytes`, without a copy. */
export const viewBatch = (records: SampleSpecs, size: number, bytes: Uint8Array): Batch => {
  const { offsets } = batchLayout(records, size);
  return Object.fromEntries(
    Object.entries(records.fields).map(([name, { dtype, shape }]) => {
      const batchShape = [size, ...shape];
      return [
        name,
        new NdArray(
          dtype,
          batchShape,
          new hostArrayType[dtype](bytes.buffer, bytes.byteOffset + offsets[name]!, elementCount(batchShape)),
        ),
      ];
    }),
  );
};

/**
 * Copies the samples `indices` into new arrays.
 *
 * @example
 * ```ts
 * const records = arrayRecords({ inputs: NdArray.from([1, 2, 3], [3, 1]) });
 * console.log(gatherBatch(records, [2, 0])["inputs"]!.toNumbers()); // [3, 1]
 * ```
 */
export const gatherBatch = (records: Records, indices: ArrayLike<number>): Batch => {
  const bytes = new Uint8Array(batchLayout(records, indices.length).totalBytes);
  writeBatch(records, indices, bytes);
  return viewBatch(records, indices.length, bytes);
};
