import { randomKey } from "@skein/tensor-core";
import { foldInKey } from "@skein/tensor-core/backend";
import { type ColourJitter, jitterColours } from "./colour-jitter.ts";
import { augmentationWord as word, drawn } from "./random-draw.ts";
import { batchLayout, type Records, sampleBytes } from "./records.ts";
import { drawRegion, type ResizedCrop, resizeRegion } from "./resized-crop.ts";

/** Random changes of training images, different in each epoch, to reduce overfitting. */
export interface Augmentation {
  /** Maximum shift of an image in each direction, in pixels. Uncovered borders are black. 0: no shift. */
  readonly cropPadding: number;
  /** Whether images are mirrored left to right with probability 1/2. */
  readonly flip: boolean;
  /** Ranges of area and aspect ratio of the random regions that are cropped and resized. Absent: no resized crop. */
  readonly resizedCrop?: ResizedCrop | undefined;
  /** Strengths of the random color changes. Absent: no color changes. */
  readonly jitter?: ColourJitter | undefined;
}

/** Number of rows, columns and channels of an image. */
export type ImageSize = readonly [rows: number, columns: number, channels: number];

/**
 * Value folded into the seed's key to get the random stream for augmentations. Shuffles, weights and dropout use other
 * values.
 */
const augmentationStream = 0xa06;

/**
 * Returns the random key for a sample in an epoch, two u32 words. The key does not depend on ranks or on the training
 * order.
 */
export const augmentationKey = (seed: number, epoch: number, sample: number): readonly [number, number] =>
  foldInKey(foldInKey(foldInKey(randomKey(seed).data, augmentationStream), epoch), sample);

/** Crops an image around its center, shifted by some pixels. Pixels outside the source are black. */
const cutOut = (
  source: Uint8Array,
  [sourceRows, sourceColumns]: ImageSize,
  target: Uint8Array,
  [rows, columns, channels]: ImageSize,
  { down, right }: { readonly down: number; readonly right: number },
): void => {
  target.fill(0);
  const top = ((sourceRows - rows) >> 1) + down;
  const left = ((sourceColumns - columns) >> 1) + right;
  const [begin, end] = [Math.max(0, -left), Math.min(columns, sourceColumns - left)];
  if (begin >= end) return;
  for (let row = Math.max(0, -top); row < Math.min(rows, sourceRows - top); row++) {
    const from = ((row + top) * sourceColumns + left + begin) * channels;
    target.set(source.subarray(from, from + (end - begin) * channels), (row * columns + begin) * channels);
  }
};

const mirror = (image: Uint8Array, [rows, columns, channels]: ImageSize): void => {
  for (let row = 0; row < rows; row++)
    for (let left = 0, right = columns - 1; left < right; left++, right--)
      for (let channel = 0; channel < channels; channel++) {
        const [one, other] = [
          (row * columns + left) * channels + channel,
          (row * columns + right) * channels + channel,
        ];
        [image[one], image[other]] = [image[other]!, image[one]!];
      }
};

/**
 * Writes the center crop of an image, as used for evaluation. An image smaller than `size` is padded with black.
 *
 * @param source u8 of `sourceSize`.
 * @param target u8 of `size`. Must not overlap `source`.
 */
export const cropCenter = (source: Uint8Array, sourceSize: ImageSize, target: Uint8Array, size: ImageSize): void =>
  cutOut(source, sourceSize, target, size, { down: 0, right: 0 });

/**
 * Writes an augmented image: cropped or shifted, then mirrored, then with changed colors. Each change draws from
 * separate words of the key's random stream, so its random numbers do not depend on the other changes.
 *
 * @param source u8 of `sourceSize`.
 * @param target u8 of `size`. Must not overlap `source`.
 * @param key Random key, as returned by `augmentationKey`.
 */
export const augmentImage = (
  source: Uint8Array,
  sourceSize: ImageSize,
  target: Uint8Array,
  size: ImageSize,
  { cropPadding, flip, resizedCrop, jitter }: Augmentation,
  key: ArrayLike<number>,
): void => {
  const moved = (index: number): number => drawn(key, index, 2 * cropPadding + 1) - cropPadding;
  const isMirrored = flip && drawn(key, word.mirrored, 2) === 1;
  if (resizedCrop === undefined) {
    cutOut(source, sourceSize, target, size, { down: moved(word.down), right: moved(word.right) });
  } else {
    const region = drawRegion([sourceSize[0], sourceSize[1]], resizedCrop, key);
    resizeRegion(source, sourceSize[1], region, target, size);
  }
  if (isMirrored) mirror(target, size);
  if (jitter !== undefined) jitterColours(target, size[2], jitter, key);
};

/**
 * Augments in place the images (field `inputs`) of a batch that `writeBatch` has written.
 *
 * @param indices Indices of the batch's samples.
 */
export const augmentBatch = (
  records: Records,
  indices: ArrayLike<number>,
  batch: Uint8Array,
  { augmentation, seed, epoch }: { readonly augmentation: Augmentation; readonly seed: number; readonly epoch: number },
): void => {
  const field = records.fields["inputs"]!;
  const size = field.shape as unknown as ImageSize;
  const bytes = sampleBytes(field);
  const first = batchLayout(records, indices.length).offsets["inputs"]!;
  const before = new Uint8Array(bytes);
  for (let i = 0; i < indices.length; i++) {
    const image = batch.subarray(first + i * bytes, first + (i + 1) * bytes);
    before.set(image);
    augmentImage(before, size, image, size, augmentation, augmentationKey(seed, epoch, indices[i]!));
  }
};
