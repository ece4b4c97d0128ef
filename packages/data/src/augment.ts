import { randomKey } from "@skein/tensor-core";
import { foldInKey, threefryWord } from "@skein/tensor-core/backend";
import { batchLayout, type Records, sampleBytes } from "./records.ts";

/** How images change from epoch to epoch, so that no two are learned by heart. */
export interface Augmentation {
  /** Pixels of black that are thought around an image before it is cut out again, anywhere. 0: none. */
  readonly cropPadding: number;
  /** Mirror left and right, half of the time. */
  readonly flip: boolean;
}

/** The stream of augmentations under a seed, apart from those of shuffles, weights and dropout. */
const augmentationStream = 0xa06;

/** Two words that a sample is changed by in an epoch; who trains on it, and after what, does not enter. */
export const augmentationKey = (seed: number, epoch: number, sample: number): readonly [number, number] =>
  foldInKey(foldInKey(foldInKey(randomKey(seed).data, augmentationStream), epoch), sample);

/** A whole number from 0 to `count` − 1, by word `index` of a key's stream. */
const drawn = (key: ArrayLike<number>, index: number, count: number): number =>
  Math.floor((threefryWord(key, index) * count) / 2 ** 32);

/**
 * Write an image as an epoch shows it.
 *
 * @param source u8 [rows, columns, channels]. @param target of the same size, other memory.
 * @param key see `augmentationKey`.
 */
export const augmentImage = (
  source: Uint8Array,
  target: Uint8Array,
  [rows, columns, channels]: readonly [number, number, number],
  { cropPadding, flip }: Augmentation,
  key: ArrayLike<number>,
): void => {
  const down = drawn(key, 0, 2 * cropPadding + 1) - cropPadding;
  const right = drawn(key, 1, 2 * cropPadding + 1) - cropPadding;
  const isMirrored = flip && drawn(key, 2, 2) === 1;
  const rowBytes = columns * channels;
  target.fill(0);
  for (let row = Math.max(0, -down); row < Math.min(rows, rows - down); row++) {
    const from = (row + down) * rowBytes;
    for (let column = 0; column < columns; column++) {
      const seen = (isMirrored ? columns - 1 - column : column) + right;
      if (seen < 0 || seen >= columns) continue;
      const [at, to] = [from + seen * channels, row * rowBytes + column * channels];
      for (let channel = 0; channel < channels; channel++) target[to + channel] = source[at + channel]!;
    }
  }
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
  const place = Object.keys(records.fields).indexOf("inputs");
  const field = records.fields["inputs"]!;
  const size = field.shape as readonly [number, number, number];
  const bytes = sampleBytes(field);
  const first = batchLayout(records, indices.length).offsets[place]!;
  const before = new Uint8Array(bytes);
  for (let i = 0; i < indices.length; i++) {
    const image = batch.subarray(first + i * bytes, first + (i + 1) * bytes);
    before.set(image);
    augmentImage(before, image, size, augmentation, augmentationKey(seed, epoch, indices[i]!));
  }
};
