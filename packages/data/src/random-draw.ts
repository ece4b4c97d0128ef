import { threefryWord } from "@skein/tensor-core/backend";

/** A number in [0, 1), by word `index` of a key's stream. */
export const drawnFraction = (key: ArrayLike<number>, index: number): number => threefryWord(key, index) / 2 ** 32;

/** A whole number from 0 to `count` − 1, by word `index` of a key's stream. */
export const drawn = (key: ArrayLike<number>, index: number, count: number): number =>
  Math.floor(drawnFraction(key, index) * count);

/** A number in [from, to), by word `index` of a key's stream. */
export const drawnBetween = (key: ArrayLike<number>, index: number, from: number, to: number): number =>
  from + (to - from) * drawnFraction(key, index);
