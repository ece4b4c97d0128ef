import { summarize } from "@skein/measuring";
import type { Times } from "@skein/report";
import { effectiveCount } from "./effective-count.ts";

/**
 * Summarizes values measured in consecutive steps. The order of the values matters, because consecutive values may be
 * correlated.
 */
export const timesOf = (series: readonly number[]): Times => ({
  ...summarize(series),
  effectiveN: effectiveCount(series),
});

/**
 * Summarizes values measured over steps on several ranks. Returns the statistics of the rank with the largest median,
 * because all other ranks wait for it.
 */
export const slowest = (byRank: readonly (readonly number[])[]): Times =>
  byRank.map(timesOf).reduce((worst, next) => (next.median > worst.median ? next : worst));
