import { ArgumentError } from "@skein/tensor-core";

/** Throws ArgumentError if a density is not in (0, 1]. `owner` is the function name for the error message. */
export const checkDensity = (owner: string, density: number): void => {
  if (!(density > 0 && density <= 1))
    throw new ArgumentError(
      `${owner}: density ${density} is not in (0, 1]; use a share such as 0.01, which keeps one entry in a hundred`,
    );
};

/**
 * Returns kept/n: the minimum share of a gradient's energy in its `kept` largest entries, and the expected share in
 * `kept` random entries. Returns 1 for an empty gradient.
 */
export const minKeptEnergyShare = (kept: number, n: number): number => (n === 0 ? 1 : kept / n);

/** Returns the number of entries to keep out of `n`: `max(1, ⌊density · n⌋)`, and 0 for n = 0. */
export const numKeptEntries = (density: number, n: number): number => Math.min(n, Math.max(1, Math.floor(density * n)));
