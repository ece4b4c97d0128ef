import { randomKey } from "@skein/tensor-core";
import { foldInKey } from "@skein/tensor-core/backend";
import { type ColourJitter, jitterColours } from "./colour-jitter.ts";
import { augmentationWord as word, drawn } from "./random-draw.ts";
import { batchLayout, type Records, sampleBytes } from "./records.ts";
import { drawRegion, type ResizedCrop, resizeRegion } from "./resized-crop.ts";

/** How images change from epoch to epoch, so that no two are learned by heart. */
export interface Augmentation {
  /**
   * Pixels that an image is moved by at most, each way, before it is cut out again; what is thought around it is black.
   * 0: none.
   */
  readonly cropPadding: number;
  /** Mirror left and right, half of the time. */
  readonly flip: boolean;
  /** Show a part of the image in its place. Default: the image, moved. */
  readonly resizedCrop?: ResizedCrop | undefined;
  /** Default: colours stay. */
  readonly jitter?: ColourJitter | undefined;
}

/** Rows, columns and channels. */
export type ImageSize = readonly [rows: number, columns: number, channels: number];

/** The stream of augmentations under a seed, apart from those of shuffles, weights and dropout. */
const augmentationStream = 0xa06;

/** Two words that a sample is changed by in an epoch; who trains on it, and after what, does not enter. */
export const augmentationKey = (seed: number, epoch: number, sample: number): readonly [number, number] =>
  foldInKey(foldInKey(foldInKey(randomKey(seed).data, augmentationStream), epoch), sample);

/** Cut an image out around its middle, moved by some pixels; black where there is none. */
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
 * Write an image as it is judged by: the middle of it, where it is larger than its place.
 *
 * @param source u8 of `sourceSize`. @param target u8 of `size`, other memory.
 */
export const showMiddle = (source: Uint8Array, sourceSize: ImageSize, target: Uint8Array, size: ImageSize): void =>
  cutOut(source, sourceSize, target, size, { down: 0, right: 0 });

/**
 * Write an image as an epoch shows it: a part of it or the whole, moved, then mirrored, then in other colours. Each of
 * these has words of its own in the key's stream, so that none changes what another one draws.
 *
 * @param source u8 of `sourceSize`. @param target u8 of `size`, other memory. @param key see `augmentationKey`.
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
 * Change the images of a batch that was written as `writeBatch` does: the field `inputs`.
 *
 * @param indices of its samples.
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
