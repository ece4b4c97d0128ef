import {
  type Augmentation,
  augmentBatch,
  augmentImage,
  augmentationKey,
  type ImageSize,
  showMiddle,
} from "../augment.ts";
import { type EncodedRecords, isEncoded, isFiled, type Samples } from "../encoded-records.ts";
import { type Batch, batchLayout, copySample, type Records, sampleBytes, viewBatch, writeBatch } from "../records.ts";
import { type DamagedImage, ImageReader } from "./image-reader.ts";
import { fillFiled } from "./read-windows.ts";

/** The epoch that images are shown as in, where they are changed. */
export interface Shown {
  readonly augmentation: Augmentation;
  readonly seed: number;
  readonly epoch: number;
}

/**
 * Write the samples `indices` into `target`, as `writeBatch` does. Batches that are asked for first are done first,
 * though samples of later ones are begun meanwhile.
 *
 * @returns how many images were decoded before, and kept.
 */
export type BatchFiller = (indices: ArrayLike<number>, target: Uint8Array, shown: Shown | undefined) => Promise<number>;

const fillStored =
  (records: Records): BatchFiller =>
  async (indices, target, shown) => {
    writeBatch(records, indices, target);
    if (shown !== undefined) augmentBatch(records, indices, target, shown);
    return 0;
  };

const fillEncoded = (records: EncodedRecords, damaged: (image: DamagedImage) => void): BatchFiller => {
  const reader = new ImageReader(records, damaged);
  const { inputs } = records.fields as { readonly inputs: EncodedRecords["fields"][string] };
  const imageBytes = sampleBytes(inputs);
  const size = inputs.shape as unknown as ImageSize;
  const { size: decoded, channels } = records.images.decoding;
  const decodedSize: ImageSize = [...decoded, channels];
  return async (indices, target, shown) => {
    const { offsets } = batchLayout(records, indices.length);
    const first = offsets["inputs"]!;
    let kept = 0;
    const place = async (index: number, i: number): Promise<void> => {
      const { pixels, sample, wasKept } = await reader.read(index);
      if (wasKept) kept++;
      const image = target.subarray(first + i * imageBytes, first + (i + 1) * imageBytes);
      // By the sample that was asked for: the one that takes its place is not shown twice alike.
      if (shown === undefined) showMiddle(pixels, decodedSize, image, size);
      else {
        const { augmentation, seed, epoch } = shown;
        augmentImage(pixels, decodedSize, image, size, augmentation, augmentationKey(seed, epoch, index));
      }
      for (const [name, field] of Object.entries(records.stored))
        copySample(field, sample, target, offsets[name]! + i * sampleBytes(field));
    };
    await Promise.all(Array.from(indices, place));
    return kept;
  };
};

/** @param damaged is told of images that others take the place of. */
export const batchFiller = (samples: Samples, damaged: (image: DamagedImage) => void): BatchFiller =>
  isEncoded(samples) ? fillEncoded(samples, damaged) : isFiled(samples) ? fillFiled(samples) : fillStored(samples);

/**
 * The samples `indices` as a batch, decoded where they are encoded; a damaged one as training has it.
 *
 * @throws DataError for an image that cannot be read, or is damaged and not to be skipped.
 */
export const readBatch = async (samples: Samples, indices: ArrayLike<number>): Promise<Batch> => {
  const target = new Uint8Array(batchLayout(samples, indices.length).totalBytes);
  await batchFiller(samples, () => undefined)(indices, target, undefined);
  return viewBatch(samples, indices.length, target);
};
