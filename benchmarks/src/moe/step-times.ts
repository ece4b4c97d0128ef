import { milliseconds } from "../report/milliseconds.ts";
import type { RangeRow } from "../report/range-plot.ts";
import type { Figures } from "../studies/outcome.ts";

/** Median of a run's step times, their deviation, and the number of steps. */
export const spread = ({ stepSeconds: { median, mad, n } }: Figures): string =>
  `${milliseconds(median)} ± ${milliseconds(mad)} (${n})`;

/** Range of a speed-up over another run by the deviation of this run's steps, with the time per step as note. */
export const speedRange = (
  speed: number,
  { stepSeconds: { median, mad } }: Figures,
): Pick<RangeRow, "value" | "low" | "high" | "note"> => ({
  value: speed,
  low: speed * (median / (median + mad)),
  high: speed * (median / Math.max(median / 2, median - mad)),
  note: `${milliseconds(median)} ms`,
});
