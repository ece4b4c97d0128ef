import { threefryWord } from "@skein/tensor-core/backend";

/**
 * Which word of a sample's stream decides what, so that none decides two things. They stay where they are: runs that are
 * gone on with see the images that they would have seen.
 */
export const augmentationWord = {
  down: 0,
  right: 1,
  mirrored: 2,
  brightness: 8,
  contrast: 9,
  saturation: 10,
  /** In which colours change. */
  order: 11,
  /** Four for each try to find a part of the image; the last, since they go on and on. */
  region: 16,
} as const;

/** A number in [0, 1), by word `index` of a key's stream. */
export const drawnFraction = (key: ArrayLike<number>, index: number): number => threefryWord(key, index) / 2 ** 32;

/** A whole number from 0 to `count` − 1, by word `index` of a key's stream. */
export const drawn = (key: ArrayLike<number>, index: number, count: number): number =>
  Math.floor(drawnFraction(key, index) * count);

/** A number in [from, to), by word `index` of a key's stream. */
export const drawnBetween = (key: ArrayLike<number>, index: number, from: number, to: number): number =>
  from + (to - from) * drawnFraction(key, index);
