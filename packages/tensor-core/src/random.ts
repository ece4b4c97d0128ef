import { ArgumentError } from "./errors.ts";
import { NdArray } from "./nd-array.ts";

const rotations: readonly number[] = [13, 15, 26, 6, 17, 29, 16, 24];
const parity = 0x1bd11bda;

/**
 * Threefry2x32 with 20 rounds: a keyed bijection of counters that passes the statistical test batteries. Generates on
 * the host the same stream that kernels generate on the device.
 *
 * @param key two 32-bit words. @param counter two 32-bit words.
 * Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC'11, §4.
 */
export const threefry2x32 = (key: ArrayLike<number>, counter: ArrayLike<number>): [number, number] => {
  const schedule = [key[0]!, key[1]!, parity ^ key[0]! ^ key[1]!];
  let x = (counter[0]! + schedule[0]!) | 0;
  let y = (counter[1]! + schedule[1]!) | 0;
  for (let round = 0; round < 20; round++) {
    const by = rotations[round % 8]!;
    x = (x + y) | 0;
    y = ((y << by) | (y >>> (32 - by))) ^ x;
    if (round % 4 === 3) {
      const injection = (round + 1) / 4;
      x = (x + schedule[injection % 3]!) | 0;
      y = (y + schedule[(injection + 1) % 3]! + injection) | 0;
    }
  }
  return [x >>> 0, y >>> 0];
};

/** Element `index` of the stream of random u32 under `key`: word `index mod 2` at counter `(⌊index/2⌋, 0)`. */
export const threefryWord = (key: ArrayLike<number>, index: number): number =>
  threefry2x32(key, [Math.floor(index / 2), 0])[index % 2]!;

/**
 * Create a key (u32[2]) from a seed, to pass into traced functions.
 *
 * @param seed integer, 0 ≤ seed < 2⁵³.
 */
export const randomKey = (seed: number): NdArray => {
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new ArgumentError(`seed ${seed} is not usable; use an integer from 0 to ${Number.MAX_SAFE_INTEGER}`);
  return NdArray.from([seed % 2 ** 32, Math.floor(seed / 2 ** 32)], [2], "u32");
};

/** `foldIn` on the host: returns the same key as the traced function `foldIn`. */
export const foldInKey = (key: ArrayLike<number>, data: number): [number, number] => threefry2x32(key, [data >>> 0, 1]);

/**
 * Random permutation of the numbers 0 … count-1, determined by `key`; each order is equally likely up to a bias of
 * count / 2³².
 *
 * @param key two words, such as `randomKey(seed).data`.
 * Source: Fisher and Yates, in Durstenfeld's form.
 */
export const permutation = (key: ArrayLike<number>, count: number): Int32Array => {
  const order = new Int32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  // Words 2k and 2k+1 of the stream share one counter, so both are computed at once.
  let words = threefry2x32(key, [Math.floor(count / 2), 0]);
  for (let i = count - 1; i > 0; i--) {
    if (i % 2 === 1) words = threefry2x32(key, [(i - 1) / 2, 0]);
    const j = Math.floor((words[i % 2]! * (i + 1)) / 2 ** 32);
    const held = order[i]!;
    order[i] = order[j]!;
    order[j] = held;
  }
  return order;
};
