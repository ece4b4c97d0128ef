import { milliseconds } from "../report/milliseconds.ts";
import type { RangeRow } from "../report/range-plot.ts";
import type { Figures } from "../studies/outcome.ts";

/** Median of a run's steps, how they scatter, and how many they are. */
export const spread = ({ stepSeconds: { median, mad, n } }: Figures): string =>
  `${milliseconds(median)} ± ${milliseconds(mad)} (${n})`;

/** So many times as fast as another run: with what its steps scatter, and its time. */
export const speedRange = (
  speed: number,
  { stepSeconds: { median, mad } }: Figures,
): Pick<RangeRow, "value" | "low" | "high" | "note"> => ({
  value: speed,
  low: speed * (median / (median + mad)),
  high: speed * (median / Math.max(median / 2, median - mad)),
  note: `${milliseconds(median)} ms`,
});
