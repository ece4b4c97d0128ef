import { escapeText } from "../html.ts";
import type { Kind } from "../tokens.ts";
import { chart, percent, pixel } from "./svg.ts";
import { linearTicks } from "./ticks.ts";

/** A series of values along an axis. */
export interface Series {
  readonly name: string;
  readonly kind: Kind;
  /** Points in ascending order of x. Points with NaN or infinite coordinates are omitted. */
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Whether to draw points as separate dots instead of a line. Default: false. */
  readonly isScattered?: boolean;
}

export interface LineChartOptions {
  readonly label: string;
  /** Name of the x axis. */
  readonly axis: string;
}

const height = 220;
/** Maximum number of drawn points per line, about the pixel width of a large window. */
const maxPoints = 2000;

type Points = Series["points"];

/** Downsamples points: each group of consecutive points is replaced by its minimum and its maximum in y. */
const downsampled = (points: Points): Points => {
  if (points.length <= maxPoints) return points;
  const each = Math.ceil((2 * points.length) / maxPoints);
  return Array.from({ length: Math.ceil(points.length / each) }, (_, i) => {
    const some = points.slice(i * each, (i + 1) * each).toSorted(([, a], [, b]) => a - b);
    return [some[0]!, some.at(-1)!].toSorted(([a], [b]) => a - b);
  }).flat();
};

const isDrawn = ([x, y]: readonly [number, number]): boolean => Math.abs(x) <= 1e30 && Math.abs(y) <= 1e30;

/** Draws series as lines, each in the color of its kind, with axes from the smallest to the largest value. */
export const lineChart = (series: readonly Series[], { label, axis }: LineChartOptions): string => {
  const drawn = series.map((one) => ({ ...one, points: downsampled(one.points.filter(isDrawn)) }));
  const all = drawn.flatMap(({ points }) => points);
  if (all.length === 0) return chart("lines", label, 60, []);
  const range = (values: readonly number[]): readonly [number, number] => {
    const [low, high] = values.reduce(
      ([a, b], value) => [Math.min(a, value), Math.max(b, value)],
      [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
    );
    const room = Math.max(0.5, Math.abs(low) / 1000); // a smaller margin could be lost to rounding
    return high - low > room / 1e9 ? [low, high] : [low - room, high + room];
  };
  const [left, right] = range(all.map(([x]) => x));
  const [low, high] = range(all.map(([, y]) => y));
  const xOf = (x: number): number => (x - left) / (right - left);
  const yOf = (y: number): number => 1 - (y - low) / (high - low);
  const lines = drawn.map(({ kind, points, isScattered = false }) => {
    if (isScattered)
      return points
        .map(([x, y]) => `<circle class="k-${kind}" cx="${percent(xOf(x))}" cy="${pixel(height * yOf(y))}" r="3.5"/>`)
        .join("");
    const d = points.map(([x, y]) => `${Math.round(10_000 * xOf(x))} ${Math.round(10_000 * yOf(y))}`).join("L");
    return `<svg width="100%" height="${height}" viewBox="0 0 10000 10000" preserveAspectRatio="none"><path class="line k-${kind}" d="M${d}"/></svg>`;
  });
  const grid = linearTicks(low, high, 5).map((tick) => {
    const y = pixel(height * yOf(tick));
    return `<line x1="0" x2="100%" y1="${y}" y2="${y}"/><text x="-6" y="${y + 4}" text-anchor="end">${tick}</text>`;
  });
  const marks = linearTicks(left, right, 6).map(
    (tick) => `<text x="${percent(xOf(tick))}" y="${height + 16}" text-anchor="middle">${tick}</text>`,
  );
  return chart("lines", label, height + 24, [
    `<g class="ticks">${grid.join("")}<text x="-6" y="${height + 16}" text-anchor="end">${escapeText(axis)}</text>${marks.join("")}</g>`,
    ...lines,
  ]);
};
