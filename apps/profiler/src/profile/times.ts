import { summarize } from "@skein/measuring";
import type { Times } from "@skein/report";
import { effectiveCount } from "./effective-count.ts";

/** Sum up what was measured in one step after the other: the order counts, since neighbours may be alike. */
export const timesOf = (series: readonly number[]): Times => ({
  ...summarize(series),
  effectiveN: effectiveCount(series),
});

/**
 * Sum up what was measured over steps by each of several ranks: of the rank whose median is greatest, since the others
 * wait for it.
 */
export const slowest = (byRank: readonly (readonly number[])[]): Times =>
  byRank.map(timesOf).reduce((worst, next) => (next.median > worst.median ? next : worst));
