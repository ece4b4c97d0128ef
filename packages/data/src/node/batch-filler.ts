import {
  type Augmentation,
  augmentBatch,
  augmentImage,
  augmentationKey,
  type ImageSize,
  cropCenter,
} from "../augment.ts";
import { type EncodedRecords, isEncoded, isFileWindows, type Samples } from "../encoded-records.ts";
import { type Batch, batchLayout, copySample, type Records, sampleBytes, viewBatch, writeBatch } from "../records.ts";
import { type DamagedImage, ImageReader } from "./image-reader.ts";
import { fillFromFile } from "./read-windows.ts";

/** Augmentation of images, and the seed and epoch that determine its random numbers. */
export interface EpochAugmentation {
  readonly augmentation: Augmentation;
  readonly seed: number;
  readonly epoch: number;
}

/**
 * Writes the samples `indices` into `target`, as `writeBatch` does. Concurrent calls complete in the order in which
 * they were made, but samples of a later batch may be read before an earlier batch is complete.
 *
 * @returns the number of images that came from the cache.
 */
export type BatchFiller = (
  indices: ArrayLike<number>,
  target: Uint8Array,
  epochAugmentation: EpochAugmentation | undefined,
) => Promise<number>;

const fillStored =
  (records: Records): BatchFiller =>
  async (indices, target, epochAugmentation) => {
    writeBatch(records, indices, target);
    if (epochAugmentation !== undefined) augmentBatch(records, indices, target, epochAugmentation);
    return 0;
  };

const fillEncoded = (records: EncodedRecords, damaged: (image: DamagedImage) => void): BatchFiller => {
  const reader = new ImageReader(records, damaged);
  const { inputs } = records.fields as { readonly inputs: EncodedRecords["fields"][string] };
  const imageBytes = sampleBytes(inputs);
  const size = inputs.shape as unknown as ImageSize;
  const { size: decoded, channels } = records.images.decoding;
  const decodedSize: ImageSize = [...decoded, channels];
  return async (indices, target, epochAugmentation) => {
    const { offsets } = batchLayout(records, indices.length);
    const first = offsets["inputs"]!;
    let numCached = 0;
    const fillSample = async (index: number, i: number): Promise<void> => {
      const { pixels, sample, wasCached } = await reader.read(index);
      if (wasCached) numCached++;
      const image = target.subarray(first + i * imageBytes, first + (i + 1) * imageBytes);
      // The random key depends on the requested sample, so that an image that replaces several damaged images is
      // augmented differently for each damaged image.
      if (epochAugmentation === undefined) cropCenter(pixels, decodedSize, image, size);
      else {
        const { augmentation, seed, epoch } = epochAugmentation;
        augmentImage(pixels, decodedSize, image, size, augmentation, augmentationKey(seed, epoch, index));
      }
      for (const [name, field] of Object.entries(records.stored))
        copySample(field, sample, target, offsets[name]! + i * sampleBytes(field));
    };
    await Promise.all(Array.from(indices, fillSample));
    return numCached;
  };
};

/**
 * Returns the function that fills batches with `samples`.
 *
 * @param damaged Called for each damaged image that is replaced by another image.
 */
export const batchFiller = (samples: Samples, damaged: (image: DamagedImage) => void): BatchFiller =>
  isEncoded(samples)
    ? fillEncoded(samples, damaged)
    : isFileWindows(samples)
      ? fillFromFile(samples)
      : fillStored(samples);

/**
 * Reads the samples `indices` as a batch. Decodes encoded images, and replaces damaged images as in training.
 *
 * @throws DataError if an image is unreadable, or if an image is damaged and damaged images are not skipped.
 * @example
 * ```ts
 * const records = arrayRecords({ inputs: NdArray.from([1, 2, 3], [3, 1]) });
 * console.log((await readBatch(records, [2]))["inputs"]!.toNumbers()); // [3]
 * ```
 */
export const readBatch = async (samples: Samples, indices: ArrayLike<number>): Promise<Batch> => {
  const target = new Uint8Array(batchLayout(samples, indices.length).totalBytes);
  await batchFiller(samples, () => undefined)(indices, target, undefined);
  return viewBatch(samples, indices.length, target);
};
