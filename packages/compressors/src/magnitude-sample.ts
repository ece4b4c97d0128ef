import { absolute, slice, type Tensor } from "@skein/tensor-core";

/** Vectors up to this length are looked at throughout. */
const wholeUpTo = 2 ** 18;
/**
 * A sample has at least so many entries: for 25 million, a read of as many cache lines takes a tenth of a read of all.
 */
const leastSample = 2 ** 17;
/** And so many of the sought ones; but at `leastStride` fewer will do. */
const wantedSought = 128;
const leastSought = 64;
/** A lesser stride would see only some taps of kernels, whose sides are 3, 5, 7 or 11, or some columns of matrices. */
const leastStride = 13;

/** Every `stride`-th of n entries: `count` of them. */
export interface SampleSize {
  readonly stride: number;
  readonly count: number;
}

const isPrime = (candidate: number): boolean => {
  for (let divisor = 2; divisor * divisor <= candidate; divisor++) if (candidate % divisor === 0) return false;
  return true;
};

/**
 * How to look at n entries so as to find out where the k largest begin: all of them up to 2¹⁸, or where k is below 832;
 * else a sample of 2¹⁷ or more with about 128 of the k in it or more; a 13th where that is less.
 *
 * The stride is prime, so that it walks through all columns of a matrix whose rows are no multiple of it.
 */
export const sampleSizeOf = (n: number, k: number): SampleSize => {
  if (n <= wholeUpTo || k < leastStride * leastSought) return { stride: 1, count: n };
  let stride = Math.max(leastStride, Math.floor(Math.min(n / leastSample, k / wantedSought)));
  while (!isPrime(stride)) stride--;
  return { stride, count: Math.ceil(n / stride) };
};

/** Every `stride`-th magnitude of `flat` (f32 [n]): f32 [s]. */
export const sampleMagnitudes = (flat: Tensor, { stride }: SampleSize): Tensor =>
  absolute(slice(flat, [0], [flat.shape[0]!], [stride]));

/**
 * The rank within a sample of s whose magnitude about k of n entries reach: `m = μ + z·√(μ(1 − s/n))` with `μ = k·s/n`;
 * k where all are looked at. At least 1, at most s.
 *
 * The entries that reach the m-th largest of a random sample are `m·n/s` in the mean, with a relative standard
 * deviation of `√((1 − s/n)/m)`. So with z deviations to spare, fewer than k (more, with a negative z) reach it hardly
 * ever: 1 time in 10⁴ at 4, in 10⁸ at 6.
 */
export const rankInSample = (k: number, n: number, { count }: SampleSize, z = 0): number => {
  const expected = (k * count) / n;
  return Math.min(count, Math.max(1, Math.round(expected + z * Math.sqrt(expected * (1 - count / n)))));
};
