import type { Network } from "../published/seven-methods.ts";

/** 0.0312 → "+3.1 %". */
export const formatError = (error: number): string =>
  `${error >= 0 ? "+" : "−"}${(100 * Math.abs(error)).toFixed(1)} %`;

/** 0.0312 → "3.1 %". */
export const formatShare = (share: number): string => `${(100 * share).toFixed(1)} %`;

/** Seconds as "261.5". */
export const formatMilliseconds = (seconds: number): string => (1e3 * seconds).toFixed(1);

/** Samples per second with as many digits as the table of measurements has. */
export const formatRate = (samplesPerSecond: number): string =>
  samplesPerSecond.toFixed(samplesPerSecond < 250 ? 2 : 1);

export const networkTitles: Readonly<Record<Network, string>> = {
  "10GbE": "10 Gbit/s Ethernet",
  "100GbIB": "100 Gbit/s InfiniBand",
  "100GbE": "100 Gbit/s Ethernet",
};
