import {
  add,
  divide,
  equal,
  floor,
  greater,
  greaterEqual,
  less,
  logicalAnd,
  maximum,
  minimum,
  multiply,
  reduceMax,
  reduceMin,
  subtract,
  sum,
  type Tensor,
  where,
} from "@skein/tensor-core";
import { levelOfKth, levelsAround, numLevelsAround } from "./magnitude-level.ts";
import { twoSidedQuantile } from "./normal-quantile.ts";

/** Number of equal intervals into which `stepsWithin` divides one level of `levelsAround`. */
const numSteps = 1024;

/**
 * Divides `level` into `numSteps` equal intervals, and returns the interval index of each magnitude: 0 at the level's
 * smallest magnitude, `numSteps` − 1 at its largest magnitude. Magnitudes of higher levels get `numSteps`, magnitudes
 * of lower levels −1.
 */
const stepsWithin = (magnitudes: Tensor, levels: Tensor, level: Tensor): Tensor => {
  const within = equal(levels, level);
  const [low, high] = [reduceMin(where(within, magnitudes, Infinity)), reduceMax(where(within, magnitudes, 0))];
  const share = divide(subtract(magnitudes, low), maximum(subtract(high, low), 1e-37));
  const step = minimum(floor(multiply(share, numSteps)), numSteps - 1);
  return where(greater(levels, level), numSteps, where(less(levels, level), -1, step));
};

/**
 * Returns the largest bound that at least `rank` magnitudes reach, with a relative error of at most 1e-6. If more than
 * `most` magnitudes reach the bound, as with ties, returns the next larger magnitude, if there is one. A bound of 0 is
 * returned unchanged, because callers select nonzero entries only.
 *
 * Counts magnitudes in two passes. The first pass counts at 4096 levels around `t = z·σ` with `z = Φ⁻¹(1 − rank/2s)`,
 * the threshold that `rank` of s normally distributed values reach. `σ = √(π/2) · mean |u|` cannot overflow, because no
 * values are squared, and is less sensitive to outliers than the standard deviation. The second pass counts at 1024
 * steps within the level that contains the bound. Levels cover a factor of 1000 below and above t.
 *
 * @param magnitudes f32 [s], s ≥ 1, none negative.
 * @returns f32 []: one of the magnitudes, so that comparisons with the bound agree with the counts; infinite if any
 *   magnitude is not finite.
 */
export const magnitudeBound = (magnitudes: Tensor, rank: number, most: number = Infinity): Tensor => {
  const s = magnitudes.shape[0]!;
  // Divides before the sum, so that a sum of finite values stays finite.
  const mean = sum(multiply(magnitudes, 1 / s));
  // z is at least 0.1, because rank s has the threshold 0, around which there would be no levels.
  const z = Math.max(0.1, twoSidedQuantile(rank / s));
  const levels = levelsAround(magnitudes, multiply(mean, z * Math.sqrt(Math.PI / 2)));
  const steps = stepsWithin(magnitudes, levels, levelOfKth(levels, numLevelsAround, rank).level);
  const { level, count, countAbove } = levelOfKth(steps, numSteps + 1, rank);
  const from = (lowest: Tensor): Tensor => reduceMin(where(greaterEqual(steps, lowest), magnitudes, Infinity));
  const bound = from(level);
  const isTied = logicalAnd(
    greater(count, Math.min(s, Math.floor(most))),
    logicalAnd(greater(countAbove, 0), greater(bound, 0)),
  );
  return where(isTied, from(add(level, 1)), bound);
};
