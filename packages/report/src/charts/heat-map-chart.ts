import { escapeText } from "../html.ts";
import { chart, percent } from "./svg.ts";
import { linearTicks } from "./ticks.ts";

/** A matrix of values, such as loads by expert and time. */
export interface HeatMapRows {
  /** Names of the rows, from top to bottom. */
  readonly rows: readonly string[];
  /** Column edges on the axis, ascending, in the unit of the axis. There is one more edge than columns. */
  readonly edges: readonly number[];
  /** Values by row and column, values[row][column], 0 or more. NaN and missing values are drawn as empty cells. */
  readonly values: readonly (readonly number[])[];
  /** Name of the horizontal axis. */
  readonly axis: string;
  /** Value that gets the darkest shade; larger values get the same shade. */
  readonly most: number;
}

/** Number of shades, small enough that readers can distinguish the shades. */
const numShades = 8;
const heights = { row: 14, gap: 30 };

/** Returns the shade of a value: 0 for a value of 0, up to `numShades`. */
const shadeOf = (value: number, most: number): number =>
  value > 0 && most > 0 ? Math.max(1, Math.min(numShades, Math.round((numShades * value) / most))) : 0;

/**
 * Draws values as shades of one color. Larger values have more contrast to the background of the page, in the light and
 * in the dark scheme. The chart has only a few kB for any number of cells, because all cells of a shade share one path.
 */
export const heatMapChart = (
  { rows, edges, values, axis, most }: HeatMapRows,
  { label }: { readonly label: string },
): string => {
  const [first, last] = [edges[0]!, edges.at(-1)!];
  const numColumns = edges.length - 1;
  if (rows.length === 0 || numColumns < 1 || !(last > first)) return chart("heat-map", label, 60, []);
  const height = rows.length * heights.row;
  const position = (edge: number): number => Math.round((10_000 * (edge - first)) / (last - first));
  const paths = Array.from({ length: numShades + 1 }, () => "");
  for (const [row, own] of values.entries())
    for (let column = 0; column < numColumns; column++) {
      const from = position(edges[column]!);
      const width = position(edges[column + 1]!) - from;
      paths[shadeOf(own[column] ?? 0, most)] += `M${from} ${row}h${width}v1h${-width}z`;
    }
  const shades = paths
    .map((d, shade) => (d === "" || shade === 0 ? "" : `<path class="shade-${shade}" d="${d}"/>`))
    .join("");
  const names = rows.map(
    (name, row) => `<text x="-6" y="${row * heights.row + 11}" text-anchor="end">${escapeText(name)}</text>`,
  );
  const isClear = (tick: number): boolean => tick - first > (last - first) / 50; // do not overlap the axis name
  const ticks = linearTicks(first, last, 6)
    .filter(isClear)
    .map(
      (tick) =>
        `<text x="${percent((tick - first) / (last - first))}" y="${height + 15}" text-anchor="middle">${tick}</text>`,
    );
  return chart("heat-map", label, height + heights.gap, [
    `<rect class="ground" width="100%" height="${height}"/>`,
    `<svg width="100%" height="${height}" viewBox="0 0 10000 ${rows.length}" preserveAspectRatio="none">${shades}</svg>`,
    `<g class="ticks">${names.join("")}<text x="-6" y="${height + 15}" text-anchor="end">${escapeText(axis)}</text>${ticks.join("")}</g>`,
  ]);
};

/** CSS rules for the shades of heat maps. */
export const shadeRules: string = Array.from(
  { length: numShades },
  (_, i) => `.shade-${i + 1}{fill:var(--accent);fill-opacity:${((i + 1) / numShades).toFixed(3)}}`,
).join("\n");
