import { absolute, slice, type Tensor } from "@skein/tensor-core";

/** Maximum length of vectors that are read completely, without sampling. */
const maxUnsampledLength = 2 ** 18;
/**
 * Minimum number of entries of a sample. For 25 million entries, reading the cache lines of such a sample takes a tenth
 * of the time of reading all entries.
 */
const minSample = 2 ** 17;
/** Preferred number of top-k entries in a sample; `minSearched` are enough at stride `minStride`. */
const preferredSought = 128;
const minSearched = 64;
/**
 * Minimum stride. A smaller stride could sample only some taps of kernels with sides 3, 5, 7 or 11, or only some
 * columns of matrices.
 */
const minStride = 13;

/** A sample of `count` entries: every `stride`-th of n entries. */
export interface SampleSize {
  readonly stride: number;
  readonly count: number;
}

const isPrime = (candidate: number): boolean => {
  for (let divisor = 2; divisor * divisor <= candidate; divisor++) if (candidate % divisor === 0) return false;
  return true;
};

/**
 * Choose the sample of n entries from which to estimate the threshold of the k largest. All entries if n ≤ 2¹⁸ or k <
 * 832. Otherwise a sample of at least 2¹⁷ entries that contains at least about 128 of the k largest, but never a stride
 * below 13.
 *
 * The stride is prime, so that samples cover all columns of a matrix unless its row length is a multiple of the stride.
 */
export const sampleSizeOf = (n: number, k: number): SampleSize => {
  if (n <= maxUnsampledLength || k < minStride * minSearched) return { stride: 1, count: n };
  let stride = Math.max(minStride, Math.floor(Math.min(n / minSample, k / preferredSought)));
  while (!isPrime(stride)) stride--;
  return { stride, count: Math.ceil(n / stride) };
};

/** Every `stride`-th magnitude of `flat` (f32 [n]): f32 [s]. */
export const sampleMagnitudes = (flat: Tensor, { stride }: SampleSize): Tensor =>
  absolute(slice(flat, [0], [flat.shape[0]!], [stride]));

/**
 * Rank in a sample of s entries whose magnitude is reached by about k of all n entries: `m = μ + z·√(μ(1 − s/n))` with
 * `μ = k·s/n`; k if the sample has all entries. At least 1, at most s.
 *
 * The number of entries that reach the m-th largest of a random sample is `m·n/s` on average, with a relative standard
 * deviation of `√((1 − s/n)/m)`. So with a margin of z deviations, fewer than k entries reach the magnitude (more than
 * k for a negative z) only rarely: once in 10⁴ for z = 4, once in 10⁸ for z = 6.
 */
export const rankInSample = (k: number, n: number, { count }: SampleSize, z = 0): number => {
  const expected = (k * count) / n;
  return Math.min(count, Math.max(1, Math.round(expected + z * Math.sqrt(expected * (1 - count / n)))));
};
