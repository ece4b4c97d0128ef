import { absolute, slice, type Tensor } from "@skein/tensor-core";

/** Maximum length of vectors that are read completely instead of sampled. */
const maxUnsampledLength = 2 ** 18;
/**
 * Minimum number of sampled entries. For 25 million entries, reading the cache lines of a sample of this size takes a
 * tenth of the time to read all entries.
 */
const minSample = 2 ** 17;
/**
 * Preferred number of top-k entries in a sample, on average. At the minimum stride, a sample with `minSearched` top-k
 * entries is enough.
 */
const preferredSought = 128;
const minSearched = 64;
/**
 * Minimum stride. A smaller stride could sample only some taps of kernels with sides 3, 5, 7 or 11, or only some
 * columns of matrices.
 */
const minStride = 13;

/** Stride and entry count of a sample: every `stride`-th entry of a vector, `count` entries. */
export interface SampleSize {
  readonly stride: number;
  readonly count: number;
}

const isPrime = (candidate: number): boolean => {
  for (let divisor = 2; divisor * divisor <= candidate; divisor++) if (candidate % divisor === 0) return false;
  return true;
};

/**
 * Chooses the sample of n entries from which to estimate the threshold of the k largest entries. If n ≤ 2¹⁸ or k < 832,
 * the sample has all entries. Otherwise it has at least 2¹⁷ entries, of which at least about 128 are among the k
 * largest entries, unless this would require a stride below 13.
 *
 * The stride is prime, so that samples cover all columns of a matrix unless its row length is a multiple of the stride.
 */
export const sampleSizeOf = (n: number, k: number): SampleSize => {
  if (n <= maxUnsampledLength || k < minStride * minSearched) return { stride: 1, count: n };
  let stride = Math.max(minStride, Math.floor(Math.min(n / minSample, k / preferredSought)));
  while (!isPrime(stride)) stride--;
  return { stride, count: Math.ceil(n / stride) };
};

/** Returns every `stride`-th magnitude of `flat` (f32 [n]): f32 [s]. */
export const sampleMagnitudes = (flat: Tensor, { stride }: SampleSize): Tensor =>
  absolute(slice(flat, [0], [flat.shape[0]!], [stride]));

/**
 * Returns the rank m in a sample of s entries for which about k of all n entries reach the sample's m-th largest
 * magnitude: `m = μ + z·√(μ(1 − s/n))` with `μ = k·s/n`, limited to 1 … s. If the sample has all entries, m is k.
 *
 * On average, `m·n/s` entries reach the m-th largest entry of a random sample, with a relative standard deviation of
 * `√((1 − s/n)/m)`. With a margin of z deviations, fewer than k entries (more than k for negative z) reach the
 * magnitude only rarely: once in 10⁴ for z = 4, once in 10⁸ for z = 6.
 */
export const rankInSample = (k: number, n: number, { count }: SampleSize, z = 0): number => {
  const expected = (k * count) / n;
  return Math.min(count, Math.max(1, Math.round(expected + z * Math.sqrt(expected * (1 - count / n)))));
};
