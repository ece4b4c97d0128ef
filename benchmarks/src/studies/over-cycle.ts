import { type Summary, summarize } from "@skein/measuring";

/**
 * Computes the mean step time of a run whose steps repeat in cycles: takes the median over the steps with the same
 * index within the cycle, and averages the medians and their deviations over the cycle. A plain median would hide work
 * that is done in only one of ten steps.
 *
 * @param seconds Seconds of consecutive steps.
 * @param cycle Number of steps after which the work of steps repeats.
 */
export const overCycle = (seconds: readonly number[], cycle: number): Summary => {
  const alike = [...Map.groupBy(seconds.keys(), (step) => step % cycle).values()].map((steps) =>
    summarize(steps.map((step) => seconds[step]!)),
  );
  const mean = (of: (one: Summary) => number): number => alike.reduce((sum, one) => sum + of(one), 0) / alike.length;
  return { median: mean(({ median }) => median), mad: mean(({ mad }) => mad), n: seconds.length };
};
