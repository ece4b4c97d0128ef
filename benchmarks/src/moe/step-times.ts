import { milliseconds } from "../report/milliseconds.ts";
import type { RangeRow } from "../report/range-plot.ts";
import type { Figures } from "../studies/outcome.ts";

/** Formats the median step time in ms, its median absolute deviation, and the number of steps. */
export const spread = ({ stepSeconds: { median, mad, n } }: Figures): string =>
  `${milliseconds(median)} ± ${milliseconds(mad)} (${n})`;

/**
 * Returns a speed-up over another run, with the range that the median absolute deviation of this run's steps gives. The
 * note is the time per step.
 */
export const speedRange = (
  speed: number,
  { stepSeconds: { median, mad } }: Figures,
): Pick<RangeRow, "value" | "low" | "high" | "note"> => ({
  value: speed,
  low: speed * (median / (median + mad)),
  high: speed * (median / Math.max(median / 2, median - mad)),
  note: `${milliseconds(median)} ms`,
});
