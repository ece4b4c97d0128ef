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

/** Number of levels that `levelsAround` returns: the maximum that a GPU can count in shared memory. */
export const numLevelsAround = 4096;

/**
 * Returns the level of each magnitude relative to a threshold t: `⌊4096 · |u| / (|u| + t)⌋`. Adjacent levels differ by
 * 0.1 % in magnitude at t, and by 2.5 % at t/100 or 100t.
 *
 * @param magnitudes f32 [n], none negative. @param threshold f32 []; values below 1e-37 are replaced by 1e-37.
 * @returns f32 [n], integers in [0, 4096).
 */
export const levelsAround = (magnitudes: Tensor, threshold: Tensor): Tensor => {
  const middle = maximum(threshold, 1e-37);
  // 1 − t/(|u| + t) instead of |u|/(|u| + t), because the result is 1 if the sum overflows.
  const share = subtract(1, divide(middle, add(magnitudes, middle)));
  return minimum(floor(multiply(share, numLevelsAround)), numLevelsAround - 1);
};

/** Level that contains the k-th largest magnitude, with the number of values at this level or above. */
export interface MagnitudeLevel {
  /** Level, an integer, f32 []; −1 if fewer than k values have a level. */
  readonly level: Tensor;
  /** Number of values at this level or above, i32 []; at least k. */
  readonly count: Tensor;
  /** Number of values above this level, i32 []; less than k. */
  readonly countAbove: Tensor;
}

/**
 * Finds the highest level for which at least `k` values are at this level or above. A single histogram counts all
 * levels, while bisection would read the values once per step.
 *
 * @param levels f32 [n], integers in [0, numLevels), higher for larger magnitudes. Integers, so that histogram bins and
 *   comparisons with a level agree exactly. Negative values have no level and are not counted.
 * @param k at least 1; i32 [] if known only at run time.
 */
export const levelOfKth = (levels: Tensor, numLevels: number, k: number | Tensor): MagnitudeLevel => {
  const fromHere = cumsum(histogram(levels, full([], 0), full([], numLevels), numLevels), { reverse: true });
  // Counts decrease with the level. So the number of levels with at least k values is one more than the highest such
  // level.
  const next = sum(cast(greaterEqual(fromHere, k), "i32"));
  const at = (index: Tensor): Tensor => gather(fromHere, index, { outside: "zero" });
  const level = subtract(next, 1);
  return { level: cast(level, "f32"), count: at(level), countAbove: at(next) };
};
