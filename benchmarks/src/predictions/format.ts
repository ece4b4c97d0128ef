import type { Network } from "../published/seven-methods.ts";

/** Formats a relative error with its sign: 0.0312 → "+3.1 %". */
export const formatError = (error: number): string =>
  `${error >= 0 ? "+" : "−"}${(100 * Math.abs(error)).toFixed(1)} %`;

/** Formats a share: 0.0312 → "3.1 %". */
export const formatShare = (share: number): string => `${(100 * share).toFixed(1)} %`;

/** Formats seconds as milliseconds: 0.2615 → "261.5". */
export const formatMilliseconds = (seconds: number): string => (1e3 * seconds).toFixed(1);

/** Formats samples per second with the number of digits that the published table has. */
export const formatRate = (samplesPerSecond: number): string =>
  samplesPerSecond.toFixed(samplesPerSecond < 250 ? 2 : 1);

export const networkTitles: Readonly<Record<Network, string>> = {
  "10GbE": "10 Gbit/s Ethernet",
  "100GbIB": "100 Gbit/s InfiniBand",
  "100GbE": "100 Gbit/s Ethernet",
};
