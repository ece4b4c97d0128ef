import { threefryWord } from "@skein/tensor-core/backend";

/**
 * Index of the word that each augmentation uses in a sample's random stream, so that no word is used twice. The indices
 * must not change, so that a resumed run uses the same images.
 */
export const augmentationWord = {
  down: 0,
  right: 1,
  mirrored: 2,
  brightness: 8,
  contrast: 9,
  saturation: 10,
  /** Random order of the color changes. */
  order: 11,
  /**
   * First word for drawing a region: four words per attempt. Must be the last index, because the number of attempts
   * varies.
   */
  region: 16,
} as const;

/** Returns a random number in [0, 1), from word `index` of a key's random stream. */
export const drawnFraction = (key: ArrayLike<number>, index: number): number => threefryWord(key, index) / 2 ** 32;

/** Returns a random integer from 0 to `count` − 1, from word `index` of a key's random stream. */
export const drawn = (key: ArrayLike<number>, index: number, count: number): number =>
  Math.floor(drawnFraction(key, index) * count);

/** Returns a random number in [from, to), from word `index` of a key's random stream. */
export const drawnBetween = (key: ArrayLike<number>, index: number, from: number, to: number): number =>
  from + (to - from) * drawnFraction(key, index);
