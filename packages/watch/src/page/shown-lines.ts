import { secondsText } from "@skein/report";
import type { ChartLine } from "./chart-lines.ts";
import type { ChartPlan } from "./chart-plan.ts";
import { axis } from "./store.ts";
import { lowerBound } from "./thin.ts";

// Properties of components that show the lines of a chart, such as its legend and its table.

export interface LinesProps {
  readonly plan: ChartPlan;
  readonly lines: { readonly current: readonly ChartLine[] };
  readonly version: { readonly value: number };
}

export const axisText = (value: number): string =>
  axis.value === "time" ? secondsText(value) : String(Number(value.toPrecision(axis.value === "step" ? 9 : 4)));

export const lineName = (plan: ChartPlan, { run, quantity }: ChartLine): string => {
  const isOne = plan.quantities.length === 1;
  return isOne ? run : `${run} ${quantity.replace(`${plan.title}.`, "")}`;
};

/** Returns the value of a line at an axis position: the value of the last point at or before the position. */
export const valueAt = ({ x, y, length }: ChartLine, position: number | undefined): number => {
  let row = position === undefined ? length - 1 : lowerBound(x, length, position);
  if (position !== undefined && (row >= length || x[row]! > position)) row--;
  while (row >= 0 && !Number.isFinite(y[row])) row--;
  return row < 0 ? Number.NaN : y[row]!;
};
