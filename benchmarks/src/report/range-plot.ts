import { escapeText, linearTicks, pixel } from "@skein/report";
import { logAxis } from "./log-axis.ts";

/** Row of a plot: a value with the range of its measurements. */
export interface RangeRow {
  readonly label: string;
  readonly value: number;
  readonly low: number;
  readonly high: number;
  /** Whether a claim may depend on the row. The mark is filled if true, hollow if false. */
  readonly solid: boolean;
  /** Maximum allowed value, drawn as a vertical stroke. Absent: no limit. */
  readonly limit?: number | undefined;
  /** Note at the right end of the row. */
  readonly note: string;
}

/** Plot with one row per value, each with its range, on a shared axis. */
export interface RangePlot {
  /** Name of the plot, part of the file name. */
  readonly name: string;
  readonly title: string;
  /** Label of the axis. */
  readonly axis: string;
  readonly scale: "linear" | "log";
  /** Value of the vertical reference line. */
  readonly reference: number;
  /** Largest value on the axis; larger values are drawn at the edge, with their number. Default: no limit. */
  readonly most?: number | undefined;
  /** Meaning of filled and hollow marks, and of strokes. */
  readonly legend: string;
  readonly rows: readonly RangeRow[];
}

const width = 1120;
const left = 290;
const right = 900;
const rowHeight = 20;
const top = 92;

interface Axis {
  at(value: number): number;
  readonly ticks: readonly number[];
}

const linearAxis = (from: number, to: number): Axis => ({
  at: (value) => left + ((right - left) * (value - from)) / (to - from),
  ticks: linearTicks(from, to, 8),
});

const axisOf = ({ scale, rows, reference, most = Number.POSITIVE_INFINITY }: RangePlot): Axis => {
  const all = rows.flatMap(({ low, high, value, limit }) => [low, high, value, limit ?? value]).concat(reference);
  const [from, to] = [Math.min(...all), Math.min(most, Math.max(...all))];
  if (scale === "log") {
    const base = to / from > 8 ? 2 : Math.SQRT2; // so that the axis has several grid lines
    return logAxis({ from: from / 1.1, to: to * 1.1, pixels: [left, right], base });
  }
  const room = to > from ? (to - from) / 20 : 1;
  return linearAxis(from - room, to + room);
};

const rowSvg = (row: RangeRow, y: number, { at }: Axis, most: number): string => {
  const colour = row.solid ? "#1b6ca8" : "#d1495b";
  const x = (value: number): number => pixel(at(Math.min(value, most)));
  const beyond = row.value > most;
  const mark = beyond
    ? `<path d="M${x(most)} ${y - 5}l8 5l-8 5z" fill="${colour}"/>`
    : `<circle cx="${x(row.value)}" cy="${y}" r="4.5" fill="${row.solid ? colour : "#ffffff"}" stroke="${colour}" stroke-width="1.5"/>`;
  const limit =
    row.limit === undefined || row.limit > most
      ? ""
      : `<path d="M${x(row.limit)} ${y - 7}v14" stroke="#222222" stroke-width="1.5" class="limit"/>`;
  return [
    `<text x="${left - 10}" y="${y + 4}" text-anchor="end">${escapeText(row.label)}</text>`,
    `<path d="M${x(row.low)} ${y}H${x(row.high)}" stroke="${colour}" stroke-width="2"/>`,
    limit,
    mark,
    `<text x="${right + 14}" y="${y + 4}" fill="#666666">${escapeText(row.note)}</text>`,
  ].join("");
};

/**
 * Draws rows of values with their ranges as an SVG.
 *
 * @throws Error if the plot has no rows, or if the axis cannot show a value.
 */
export const formatRangePlot = (plot: RangePlot): string => {
  const { rows, title, axis, reference, legend, most = Number.POSITIVE_INFINITY } = plot;
  if (rows.length === 0) throw new Error(`the plot "${plot.name}" has no row; draw one where something was measured`);
  const scale = axisOf(plot);
  const bottom = top + rows.length * rowHeight;
  const height = bottom + 52;
  const tick = (value: number): string => `${Number(value.toPrecision(3))}`;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="13" fill="#222222">`,
    `<title>${escapeText(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="20" y="30" font-size="17">${escapeText(title)}</text>`,
    `<text x="20" y="54" fill="#666666">${escapeText(legend)}</text>`,
    ...scale.ticks.flatMap((value) => {
      const x = pixel(scale.at(value));
      return [
        `<path d="M${x} ${top - 8}V${bottom}" stroke="#dddddd"/>`,
        `<text x="${x}" y="${bottom + 18}" text-anchor="middle">${tick(value)}</text>`,
      ];
    }),
    `<path d="M${pixel(scale.at(reference))} ${top - 8}V${bottom}" stroke="#444444" class="reference"/>`,
    ...rows.map((row, index) => rowSvg(row, top + index * rowHeight + rowHeight / 2, scale, most)),
    `<text x="${(left + right) / 2}" y="${height - 12}" text-anchor="middle">${escapeText(axis)}</text>`,
    "</svg>",
  ].join("\n")}\n`;
};
