import {
  add,
  cast,
  cumsum,
  divide,
  floor,
  full,
  gather,
  greaterEqual,
  histogram,
  maximum,
  minimum,
  multiply,
  subtract,
  sum,
  type Tensor,
} from "@skein/tensor-core";

/** Levels of `levelsAround`: as many as a device counts in its fastest memory. */
export const numLevelsAround = 4096;

/**
 * Levels of magnitude around a threshold t: `⌊4096 · |u| / (|u| + t)⌋`. One level at t is a step of 0.1 % in magnitude,
 * at t/100 or 100t of 2.5 %.
 *
 * @param magnitudes f32 [n], none negative. @param threshold f32 []; counts as 1e-37 if it is less.
 * @returns f32 [n], whole numbers in [0, 4096).
 */
export const levelsAround = (magnitudes: Tensor, threshold: Tensor): Tensor => {
  const middle = maximum(threshold, 1e-37);
  // 1 − t/(|u| + t), because a sum that overflows then gives 1.
  const share = subtract(1, divide(middle, add(magnitudes, middle)));
  return minimum(floor(multiply(share, numLevelsAround)), numLevelsAround - 1);
};

/** The level in which the k-th largest magnitude lies, and how many lie in it and above. */
export interface MagnitudeLevel {
  /** f32 [], a whole number. -1 when fewer than k values have a level. */
  readonly level: Tensor;
  /** i32 []: values of this level and above, at least k. */
  readonly count: Tensor;
  /** i32 []: values above, fewer than k. */
  readonly countAbove: Tensor;
}

/**
 * Find the highest level that, with all above, holds `k` values: the counts at all levels from one histogram, where a
 * bisection would read the values once per step.
 *
 * @param levels f32 [n], whole numbers in [0, numLevels), higher for larger magnitudes. Whole numbers, so that the bins
 * of the histogram and comparisons with a level say the same to the last entry. Others below 0 have none.
 * @param k at least 1; i32 [] where it is known at run time only.
 */
export const levelOfKth = (levels: Tensor, numLevels: number, k: number | Tensor): MagnitudeLevel => {
  const fromHere = cumsum(histogram(levels, full([], 0), full([], numLevels), numLevels), { reverse: true });
  // Counts do not rise with the level, so those of at least k come first: their number says where they end.
  const next = sum(cast(greaterEqual(fromHere, k), "i32"));
  const at = (index: Tensor): Tensor => gather(fromHere, index, { outside: "zero" });
  const level = subtract(next, 1);
  return { level: cast(level, "f32"), count: at(level), countAbove: at(next) };
};
