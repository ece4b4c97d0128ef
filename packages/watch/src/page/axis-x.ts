import type { Rows } from "@skein/run-files";
import { lowerBound } from "./thin.ts";

export const axes = ["step", "time", "epoch"] as const;

export type Axis = (typeof axes)[number];

/**
 * Returns the fractional number of epochs after each step: the step divided by the steps per epoch. If the steps per
 * epoch are not known yet, returns the epoch numbers of the step lines.
 */
const epochsOf = (rows: Rows, steps: Rows | undefined): Float64Array => {
  const epochs = steps?.columns.get("epoch");
  const result = new Float64Array(rows.length);
  if (steps === undefined || epochs === undefined || steps.length === 0) return result;
  let perEpoch: number | undefined;
  let [change, previous] = [-1, epochs[0]!];
  for (let row = 1; row < steps.length && perEpoch === undefined; row++) {
    if (epochs[row] === previous || !Number.isFinite(epochs[row])) continue;
    const length = steps.steps[row]! - (change < 0 ? steps.steps[0]! : steps.steps[change]!);
    if (change >= 0 || steps.steps[0] === 1) perEpoch = length;
    [change, previous] = [row, epochs[row]!];
  }
  for (let row = 0; row < rows.length; row++) {
    const step = rows.steps[row]!;
    const at = Math.min(steps.length - 1, lowerBound(steps.steps, steps.length, step));
    result[row] = perEpoch === undefined ? epochs[at]! : step / perEpoch;
  }
  return result;
};

/** Returns the position of each row along the x axis, ascending. */
export const positionsOf = (rows: Rows, axis: Axis, steps: Rows | undefined): Float64Array =>
  axis === "step" ? rows.steps : axis === "time" ? rows.times : epochsOf(rows, steps);

/**
 * Returns the range of the rows of the given runs along the x axis. The range does not depend on the drawn lines, so
 * that all charts have the same range.
 */
export const extentOf = (
  runs: readonly { readonly byType: ReadonlyMap<string, Rows> }[],
  axis: Axis,
): { readonly from: number; readonly to: number } => {
  let [from, to] = [Infinity, -Infinity];
  for (const { byType } of runs) {
    const steps = byType.get("step");
    // epochs come from step lines, and reading the rows of all types would take longer
    for (const rows of axis === "epoch" && steps !== undefined ? [steps] : byType.values()) {
      if (rows.length === 0) continue;
      const x = positionsOf(rows, axis, steps);
      from = Math.min(from, x[0]!);
      to = Math.max(to, x[rows.length - 1]!);
    }
  }
  return from <= to ? { from, to: to > from ? to : from + 1 } : { from: 0, to: 1 };
};
