import { hostArrayType } from "@skein/tensor-core/backend";
import { type EncodedRecords, isEncoded } from "./encoded-records.ts";
import { epochOrder } from "./order.ts";
import { type Field, type Records, sampleBytes } from "./records.ts";

/** Samples that can be reordered individually: all types except windows of a token file. */
export type DrawnSamples = Records | EncodedRecords;

/** Copies the samples `indices` of one field to shared memory. */
const chosenField = (field: Field, indices: Int32Array): Field => {
  const each = sampleBytes(field);
  const bytes = new Uint8Array(new SharedArrayBuffer(indices.length * each));
  for (const [to, index] of indices.entries()) {
    const from = field.offsetBytes + index * field.strideBytes;
    bytes.set(field.bytes.subarray(from, from + each), to * each);
  }
  return { ...field, bytes, offsetBytes: 0, strideBytes: each };
};

const chosenFields = (fields: Records["fields"], indices: Int32Array): Records["fields"] =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, chosenField(field, indices)]));

/** Returns the samples `indices`, in that order. Encoded images are not copied. All other fields are copied. */
export const chosenSamples = <Some extends DrawnSamples>(samples: Some, indices: Int32Array): Some => {
  if (!isEncoded(samples)) return { count: indices.length, fields: chosenFields(samples.fields, indices) } as Some;
  const { firstImage, order } = samples;
  const images = indices.map((index) => (order === undefined ? firstImage + index : order[firstImage + index]!));
  const shared = new Int32Array(new SharedArrayBuffer(4 * images.length));
  shared.set(images);
  const stored = chosenFields(samples.stored, indices);
  return { ...samples, count: indices.length, stored, order: shared, firstImage: 0 };
};

/**
 * Returns the class of each sample, from the field `labels`.
 *
 * @returns undefined unless labels are one integer per sample.
 * @example
 * ```ts
 * const records = arrayRecords({ inputs: NdArray.from([1, 2], [2, 1]), labels: NdArray.from([0, 1], [2], "i32") });
 * console.log([...sampleClasses(records)!]); // [0, 1]
 * ```
 */
export const sampleClasses = (samples: DrawnSamples): Int32Array | undefined => {
  const labels = (isEncoded(samples) ? samples.stored : samples.fields)["labels"];
  if (labels === undefined || labels.shape.length > 0) return undefined;
  if (labels.dtype !== "i32" && labels.dtype !== "u32" && labels.dtype !== "u8") return undefined;
  const { bytes } = chosenField(
    labels,
    Int32Array.from({ length: samples.count }, (_, i) => i),
  );
  return Int32Array.from(new hostArrayType[labels.dtype](bytes.buffer, 0, samples.count) as ArrayLike<number>);
};

/**
 * Returns the number of samples to draw from each class, proportional to the class size. The numbers add up to `total`.
 *
 * @param spared Number of samples of each class to leave undrawn, unless `total` would not be reached.
 */
const quotas = (counts: ReadonlyMap<number, number>, total: number, spared: 0 | 1): Map<number, number> => {
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const shares = [...counts].map(([label, count]) => {
    const exact = (count * total) / all;
    return { label, count, quota: Math.floor(exact), rest: exact - Math.floor(exact) };
  });
  let left = total - shares.reduce((sum, { quota }) => sum + quota, 0);
  const byRest = shares.toSorted((a, b) => b.rest - a.rest || a.label - b.label);
  // The second round ignores `spared`, because most classes may have a single sample.
  for (const kept of [spared, 0])
    for (const share of byRest)
      if (left > 0 && share.quota + kept < share.count && share.quota <= (share.count * total) / all) {
        share.quota++;
        left--;
      }
  return new Map(shares.map(({ label, quota }) => [label, quota]));
};

/** A random order of samples, and whether each sample is drawn. */
interface Draw {
  readonly order: Int32Array;
  readonly isDrawn: Uint8Array;
}

/**
 * Draws `total` of `count` samples, with the same share of each class. The result depends only on the arguments.
 *
 * @param classes Class of each sample. Undefined: samples are drawn regardless of class.
 * @param spared Number of samples of each class to leave undrawn, unless `total` would not be reached.
 */
export const drawPerClass = (
  count: number,
  total: number,
  { classes, spared = 0 }: { readonly classes?: Int32Array | undefined; readonly spared?: 0 | 1 } = {},
): Draw => {
  const classOf = (index: number): number => classes?.[index] ?? 0;
  const counts = new Map<number, number>();
  for (let index = 0; index < count; index++) counts.set(classOf(index), (counts.get(classOf(index)) ?? 0) + 1);
  const left = quotas(counts, total, spared);
  const order = epochOrder(0, 0, count);
  const isDrawn = new Uint8Array(count);
  for (const index of order.toReversed()) {
    const quota = left.get(classOf(index))!;
    if (quota === 0) continue;
    left.set(classOf(index), quota - 1);
    isDrawn[index] = 1;
  }
  return { order, isDrawn };
};

/**
 * Draws at most `count` samples, with the same share of each class, in random order. The result depends only on the
 * number of samples, their classes and `count`. Returns all samples in their original order if there are at most
 * `count`.
 *
 * @param classes Class of each sample, see `sampleClasses`.
 * @example
 * ```ts
 * const inputs = NdArray.from([1, 2, 3, 4], [4, 1]);
 * const records = arrayRecords({ inputs, labels: NdArray.from([0, 0, 1, 1], [4], "i32") });
 * const few = drawSamples(records, 2, sampleClasses(records)!); // one of each class
 * console.log(gatherBatch(few, [0, 1])["labels"]!.toNumbers()); // [1, 0]
 * ```
 */
export const drawSamples = <Some extends DrawnSamples>(samples: Some, count: number, classes: Int32Array): Some => {
  if (count >= samples.count) return samples;
  const { order, isDrawn } = drawPerClass(samples.count, count, { classes });
  return chosenSamples(
    samples,
    order.filter((index) => isDrawn[index] === 1),
  );
};
