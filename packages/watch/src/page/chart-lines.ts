import type { Rows } from "@skein/run-files";
import { type Axis, positionsOf } from "./axis-x.ts";
import type { ChartPlan } from "./chart-plan.ts";
import { Smoothed } from "./smooth.ts";
import { colourIndex, colours, loadedRun } from "./store.ts";

/** A line of a chart: one quantity of one run. */
export interface ChartLine {
  readonly key: string;
  readonly run: string;
  readonly quantity: string;
  /** Color index, 0 to 7: by run, or by quantity if only one run is shown. */
  readonly colour: number;
  /** Index of the dash pattern, 0 to 3: by quantity, if colors identify runs. */
  readonly dash: number;
  readonly x: Float64Array;
  readonly y: Float32Array;
  readonly raw: Float32Array;
  readonly length: number;
}

interface KeptAverage {
  readonly rows: Rows;
  readonly weight: number;
  readonly average: Smoothed;
}

const dashes = 4;
/** Minimum number of points for smoothing. Shorter lines, such as evaluations, are not smoothed. */
const minSmoothed = 50;

/** Computes the lines of a chart. Caches moving averages between updates. */
export class ChartLines {
  private readonly averages = new Map<string, KeptAverage>();

  /** Returns the lines of a chart for some runs. @param smoothing Weight of earlier values; 0: no smoothing. */
  of(plan: ChartPlan, ids: readonly string[], axis: Axis, smoothing: number): ChartLine[] {
    return ids.flatMap((run) =>
      plan.quantities.flatMap(({ type, name }, index): ChartLine[] => {
        const { byType } = loadedRun(run);
        const rows = byType.get(type);
        const raw = rows?.columns.get(name);
        if (rows === undefined || raw === undefined) return [];
        const key = `${run}\n${type}/${name}`;
        const length = Math.min(rows.length, raw.length);
        const y = smoothing > 0 && length >= minSmoothed ? this.averageOf(key, rows, smoothing).of(raw, length) : raw;
        return [
          {
            key,
            run,
            quantity: plan.isOfRanks ? type : name,
            ...(ids.length === 1
              ? { colour: (colourIndex(run) + index) % colours, dash: 0 }
              : { colour: colourIndex(run), dash: index % dashes }),
            x: positionsOf(rows, axis, byType.get("step")),
            y,
            raw,
            length,
          },
        ];
      }),
    );
  }

  private averageOf(key: string, rows: Rows, weight: number): Smoothed {
    const kept = this.averages.get(key);
    if (kept?.rows === rows && kept.weight === weight) return kept.average;
    const average = new Smoothed(weight);
    this.averages.set(key, { rows, weight, average });
    return average;
  }
}
