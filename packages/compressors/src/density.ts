import { ArgumentError } from "@skein/tensor-core";

/** Check that a density is in (0, 1]. `owner` is the function that the error message names. @throws ArgumentError */
export const checkDensity = (owner: string, density: number): void => {
  if (!(density > 0 && density <= 1))
    throw new ArgumentError(
      `${owner}: density ${density} is not in (0, 1]; use a share such as 0.01, which keeps one entry in a hundred`,
    );
};

/**
 * Minimum share of a gradient's energy in its `kept` largest entries, or in the same number of randomly drawn entries:
 * kept/n, and 1 for an empty gradient.
 */
export const minKeptEnergyShare = (kept: number, n: number): number => (n === 0 ? 1 : kept / n);

/** Number of entries that a density keeps of `n`: `max(1, ⌊density · n⌋)`, and 0 for n = 0. */
export const numKeptEntries = (density: number, n: number): number => Math.min(n, Math.max(1, Math.floor(density * n)));
