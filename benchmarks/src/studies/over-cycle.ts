import { type Summary, summarize } from "@skein/measuring";

/**
 * What a step takes in the mean where steps differ and repeat: the mean over a cycle of the medians of steps that do
 * the same, and of what these waver by. A median of all steps would hide what is done in one of ten.
 *
 * @param seconds of steps one after the other. @param cycle steps after which what a step does repeats.
 */
export const overCycle = (seconds: readonly number[], cycle: number): Summary => {
  const alike = [...Map.groupBy(seconds.keys(), (step) => step % cycle).values()].map((steps) =>
    summarize(steps.map((step) => seconds[step]!)),
  );
  const mean = (of: (one: Summary) => number): number => alike.reduce((sum, one) => sum + of(one), 0) / alike.length;
  return { median: mean(({ median }) => median), mad: mean(({ mad }) => mad), n: seconds.length };
};
