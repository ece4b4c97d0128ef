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

/** Steps of a level of `levelsAround`. */
const numSteps = 1024;

/**
 * Where these levels are above `level`, `numSteps`; where below, -1; and within, the step of the magnitude between the
 * least and the greatest there.
 */
const stepsWithin = (magnitudes: Tensor, levels: Tensor, level: Tensor): Tensor => {
  const within = equal(levels, level);
  const [low, high] = [reduceMin(where(within, magnitudes, Infinity)), reduceMax(where(within, magnitudes, 0))];
  const share = divide(subtract(magnitudes, low), maximum(subtract(high, low), 1e-37));
  const step = minimum(floor(multiply(share, numSteps)), numSteps - 1);
  return where(greater(levels, level), numSteps, where(less(levels, level), -1, step));
};

/**
 * The magnitude that `rank` of these reach, to 1e-6 of it or better. Where more than `most` reach it, as with ties, the
 * next greater one, if there is one; but 0 stays, since whoever compares with it takes what is not 0.
 *
 * Counted twice: at 4096 levels around `t = z·σ` with `z = Φ⁻¹(1 − rank/2s)`, where a normal distribution would have
 * its `rank` largest, and its `σ = √(π/2) · mean |u|`: no squares that overflow, and less moved by outliers than the
 * standard deviation; then at 1024 steps of the level that it lies in. Levels reach 1000 times below and above t.
 *
 * @param magnitudes f32 [s], s ≥ 1, none negative.
 * @returns f32 []: one of the magnitudes, so that comparing with it counts as the levels do; infinite where one is not
 * finite.
 */
export const magnitudeBound = (magnitudes: Tensor, rank: number, most: number = Infinity): Tensor => {
  const s = magnitudes.shape[0]!;
  // Divided before they are added: a sum of finite values stays finite.
  const mean = sum(multiply(magnitudes, 1 / s));
  // A threshold of 0 has no levels around it: a bound for rank s.
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
