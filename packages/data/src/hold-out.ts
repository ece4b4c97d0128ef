import { ArgumentError } from "@skein/tensor-core";
import { hostArrayType } from "@skein/tensor-core/backend";
import { type EncodedRecords, isEncoded } from "./encoded-records.ts";
import { DataError } from "./errors.ts";
import { epochOrder } from "./order.ts";
import { type Field, type Records, sampleBytes } from "./records.ts";

/** Samples that can be reordered one by one: all but windows of a token file. */
export type DrawnSamples = Records | EncodedRecords;

/** The samples `indices` of a field, copied to shared memory. */
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

/** The samples `indices`, in that order. Encoded images stay in their files; everything else is copied. */
const chosen = <Some extends DrawnSamples>(samples: Some, indices: Int32Array): Some => {
  if (!isEncoded(samples)) return { count: indices.length, fields: chosenFields(samples.fields, indices) } as Some;
  const { firstImage, order } = samples;
  const images = indices.map((index) => (order === undefined ? firstImage + index : order[firstImage + index]!));
  const shared = new Int32Array(new SharedArrayBuffer(4 * images.length));
  shared.set(images);
  const stored = chosenFields(samples.stored, indices);
  return { ...samples, count: indices.length, stored, order: shared, firstImage: 0 };
};

/**
 * The class of each sample, from the field `labels`.
 *
 * @returns undefined unless labels are one integer per sample.
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

/** Held-out samples per class: in proportion, `total` together, and never a class's only sample if others suffice. */
const quotas = (counts: ReadonlyMap<number, number>, total: number): Map<number, number> => {
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const shares = [...counts].map(([label, count]) => {
    const exact = (count * total) / all;
    return { label, count, quota: Math.floor(exact), rest: exact - Math.floor(exact) };
  });
  let left = total - shares.reduce((sum, { quota }) => sum + quota, 0);
  const byRest = shares.toSorted((a, b) => b.rest - a.rest || a.label - b.label);
  // The second round is for data in which most classes have a single sample.
  for (const kept of [1, 0])
    for (const share of byRest)
      if (left > 0 && share.quota + kept < share.count && share.quota <= (share.count * total) / all) {
        share.quota++;
        left--;
      }
  return new Map(shares.map(({ label, quota }) => [label, quota]));
};

/**
 * Draw held-out samples, with the same share of each class where `classes` says which class a sample is of. Both parts
 * are shuffled. The draw is a function of the number of samples and of their classes.
 *
 * @param fraction in (0, 1) that is held out, rounded down; at least one sample.
 * @param options `name` of the data in errors, and `classes` of the samples (see `sampleClasses`). Without classes the
 * draw is from all samples.
 * @throws ArgumentError for another fraction. @throws DataError for fewer than two samples.
 */
export const holdOut = <Some extends DrawnSamples>(
  samples: Some,
  fraction: number,
  { name, classes }: { readonly name: string; readonly classes?: Int32Array | undefined },
): { readonly train: Some; readonly test: Some } => {
  if (!(fraction > 0 && fraction < 1))
    throw new ArgumentError(
      `a held-out fraction of ${fraction} leaves one part empty; use a number between 0 and 1, such as 0.1`,
    );
  const { count } = samples;
  if (count < 2)
    throw new DataError(`${name} holds ${count} samples, but training and evaluation need one each; give at least two`);
  const classOf = (index: number): number => classes?.[index] ?? 0;
  const counts = new Map<number, number>();
  for (let index = 0; index < count; index++) counts.set(classOf(index), (counts.get(classOf(index)) ?? 0) + 1);
  const left = quotas(counts, Math.max(1, Math.floor(count * fraction)));
  const order = epochOrder(0, 0, count);
  const isHeld = new Uint8Array(count);
  for (const index of order.toReversed()) {
    const quota = left.get(classOf(index))!;
    if (quota === 0) continue;
    left.set(classOf(index), quota - 1);
    isHeld[index] = 1;
  }
  return {
    train: chosen(
      samples,
      order.filter((index) => isHeld[index] === 0),
    ),
    test: chosen(
      samples,
      order.filter((index) => isHeld[index] === 1),
    ),
  };
};
