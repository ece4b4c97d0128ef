import { type Summary, summarize } from "@skein/measuring";

/**
 * Mean time of a step if steps differ and repeat: the mean over a cycle of the medians of equal steps, with the mean of
 * their deviations. A median of all steps would hide work that is done in one of ten steps.
 *
 * @param seconds of consecutive steps. @param cycle number of steps after which the work of steps repeats.
 */
export const overCycle = (seconds: readonly number[], cycle: number): Summary => {
  const alike = [...Map.groupBy(seconds.keys(), (step) => step % cycle).values()].map((steps) =>
    summarize(steps.map((step) => seconds[step]!)),
  );
  const mean = (of: (one: Summary) => number): number => alike.reduce((sum, one) => sum + of(one), 0) / alike.length;
  return { median: mean(({ median }) => median), mad: mean(({ mad }) => mad), n: seconds.length };
};
