import { ArgumentError } from "./errors.ts";
import { NdArray } from "./nd-array.ts";

const rotations: readonly number[] = [13, 15, 26, 6, 17, 29, 16, 24];
const parity = 0x1bd11bda;

/**
 * Threefry2x32 with 20 rounds: a counter-based random number generator that passes the usual statistical test suites.
 * The kernels of all devices return the same two words as this host function.
 *
 * @param key Two 32-bit words. @param counter Two 32-bit words.
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

/**
 * Returns element `index` of the u32 random stream of `key`: word `index mod 2` of the block with counter
 * `(⌊index/2⌋, 0)`.
 */
export const threefryWord = (key: ArrayLike<number>, index: number): number =>
  threefry2x32(key, [Math.floor(index / 2), 0])[index % 2]!;

/**
 * Creates a key (u32[2]) from a seed, to pass into traced functions.
 *
 * @param seed Integer, 0 ≤ seed < 2⁵³.
 * @example
 * ```ts
 * const key = randomKey(1);
 * console.log((await evaluate((seed: Tensor) => uniform(seed, [2]), referenceBackend())(key)).shape); // [2]
 * ```
 */
export const randomKey = (seed: number): NdArray => {
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new ArgumentError(`seed ${seed} is not usable; use an integer from 0 to ${Number.MAX_SAFE_INTEGER}`);
  return NdArray.from([seed % 2 ** 32, Math.floor(seed / 2 ** 32)], [2], "u32");
};

/** Derives a new key from `key` and `data` on the host. Equals the traced function `foldIn`. */
export const foldInKey = (key: ArrayLike<number>, data: number): [number, number] => threefry2x32(key, [data >>> 0, 1]);

/**
 * Returns a random permutation of 0 … count − 1, determined by `key`. All permutations are equally likely, up to a
 * relative bias of count / 2³² per draw.
 *
 * @param key Two 32-bit words, such as `randomKey(seed).data`.
 * @example
 * ```ts
 * console.log([...permutation([0, 1], 4)].toSorted()); // [0, 1, 2, 3]
 * ```
 * Source: Fisher and Yates, in Durstenfeld's form.
 */
export const permutation = (key: ArrayLike<number>, count: number): Int32Array => {
  const order = new Int32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  // Words 2k and 2k+1 of the stream have the same counter, so one Threefry call computes both words.
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
