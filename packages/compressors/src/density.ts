import { ArgumentError } from "@skein/tensor-core";

/** Refuse a density outside (0, 1], in the name of what was given it. @throws ArgumentError */
export const checkDensity = (owner: string, density: number): void => {
  if (!(density > 0 && density <= 1))
    throw new ArgumentError(`${owner}: density ${density} is not in (0, 1]; 0.01 keeps one entry in a hundred`);
};

/**
 * Least part of a gradient's energy that its `kept` largest entries, or as many drawn ones, hold: kept/n, and all of an
 * empty one.
 */
export const keptShare = (kept: number, n: number): number => (n === 0 ? 1 : kept / n);

/** Entries that a density keeps of `n`: `max(1, ⌊density · n⌋)`, and none of none. */
export const keptEntries = (density: number, n: number): number => Math.min(n, Math.max(1, Math.floor(density * n)));
