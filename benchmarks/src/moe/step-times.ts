import { milliseconds } from "../report/milliseconds.ts";
import type { RangeRow } from "../report/range-plot.ts";
import type { Figures } from "../studies/outcome.ts";

/** Formats the median step time in ms, its median absolute deviation, and the number of steps. */
export const spread = ({ stepSeconds: { median, mad, n } }: Figures): string =>
  `${milliseconds(median)} ± ${milliseconds(mad)} (${n})`;

/**
 * Returns a row's speed-up over another run, with an error range and the time per step as note. The range is the
 * speed-up at this run's median step time plus and minus the median absolute deviation.
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
