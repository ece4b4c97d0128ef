import { summarize } from "@skein/measuring";
import type { Times } from "@skein/report";
import { effectiveCount } from "./effective-count.ts";

/**
 * Summarize values measured in consecutive steps. The order of the values matters, because consecutive values may be
 * correlated.
 */
export const timesOf = (series: readonly number[]): Times => ({
  ...summarize(series),
  effectiveN: effectiveCount(series),
});

/**
 * Summarize values measured over steps on several ranks: returns the statistics of the rank with the largest median,
 * because the other ranks wait for this rank.
 */
export const slowest = (byRank: readonly (readonly number[])[]): Times =>
  byRank.map(timesOf).reduce((worst, next) => (next.median > worst.median ? next : worst));
