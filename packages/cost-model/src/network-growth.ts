import { fitLink } from "@skein/collectives";
import { ArgumentError } from "@skein/tensor-core";

/**
 * Growth of a network's seconds per byte with the number of hosts. With each doubling of the hosts, switches, TCP
 * windows and stragglers make messages slower than their byte count predicts.
 */
export interface NetworkGrowth {
  /** Number of hosts at which the seconds per byte were measured; 1 or more. */
  readonly numHosts: number;
  /** Relative increase of the seconds per byte for each doubling of the hosts; 0 or more. */
  readonly sharePerDoubling: number;
}

/** Measured seconds per byte of a network at one number of hosts. */
export interface GrowthSample {
  readonly numHosts: number;
  /**
   * Seconds per byte of a link in one direction. A ring all-reduce of M bytes over P hosts takes 2 (P − 1) / P · M
   * times this value.
   */
  readonly secondsPerByte: number;
}

/** Seconds per byte at the smallest measured number of hosts, and their growth at larger numbers, both fitted. */
export interface FittedNetworkGrowth {
  readonly secondsPerByte: number;
  readonly growth: NetworkGrowth;
}

/**
 * Computes the seconds per byte of a network of `numHosts` hosts: b · (1 + g · log2(numHosts / n)), with b measured at
 * n hosts and growth g per doubling. For fewer than n hosts the result is b.
 *
 * @example
 * ```ts
 * console.log(grownSecondsPerByte(8, { numHosts: 2, sharePerDoubling: 0.5 }, 4)); // 12
 * ```
 */
export const grownSecondsPerByte = (
  secondsPerByte: number,
  { numHosts: measuredAt, sharePerDoubling }: NetworkGrowth,
  numHosts: number,
): number => secondsPerByte * (1 + sharePerDoubling * Math.max(0, Math.log2(numHosts / measuredAt)));

/**
 * Fits b · (1 + g · log2(numHosts / n)) to measured seconds per byte. n is the smallest measured number of hosts. Uses
 * least squares of relative errors with b, g ≥ 0. For a network that becomes faster with more hosts, g is 0.
 *
 * @param samples Measurements at two or more host counts.
 * @throws ArgumentError if there are fewer than two host counts, if a value is not finite and positive, or if the
 * samples scatter so widely that the best fit has b = 0.
 * @example
 * ```ts
 * const samples = [{ numHosts: 2, secondsPerByte: 1 }, { numHosts: 4, secondsPerByte: 2 }];
 * const { secondsPerByte, growth } = fitNetworkGrowth(samples);
 * console.log(secondsPerByte.toFixed(2), growth.sharePerDoubling.toFixed(2)); // 1.00 1.00
 * ```
 */
export const fitNetworkGrowth = (samples: readonly GrowthSample[]): FittedNetworkGrowth => {
  const wrong = samples.find(
    ({ numHosts, secondsPerByte }) =>
      !(numHosts >= 1 && Number.isFinite(numHosts) && secondsPerByte > 0 && Number.isFinite(secondsPerByte)),
  );
  if (wrong !== undefined)
    throw new ArgumentError(
      `fitNetworkGrowth: ${wrong.secondsPerByte} s/byte on ${wrong.numHosts} hosts is not a measurement; both must be finite, the first above 0 and the second 1 or more`,
    );
  const sizes = [...new Set(samples.map(({ numHosts }) => numHosts))];
  if (sizes.length < 2)
    throw new ArgumentError(
      `fitNetworkGrowth: all ${samples.length} samples are of ${sizes[0] ?? 0} hosts; growth needs two numbers of hosts, such as 2 and 4`,
    );
  const numHosts = Math.min(...sizes);
  const { secondsPerMessage: secondsPerByte, secondsPerByte: perDoubling } = fitLink(
    samples.map((sample) => ({ bytes: Math.log2(sample.numHosts / numHosts), seconds: sample.secondsPerByte })),
  );
  if (secondsPerByte === 0)
    throw new ArgumentError(
      `fitNetworkGrowth: the best line is 0 s/byte at ${numHosts} hosts, so the samples contradict each other; measure ${numHosts} hosts again`,
    );
  return { secondsPerByte, growth: { numHosts, sharePerDoubling: perDoubling / secondsPerByte } };
};
