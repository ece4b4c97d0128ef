import { escapeText } from "../html.ts";
import { decimalUnits, rateText, secondsText } from "../quantities.ts";
import type { Kind } from "../tokens.ts";
import { chart, isSize, percent, pixel } from "./svg.ts";
import { logPosition, logTicks, tickTexts } from "./ticks.ts";

/** Flops and bytes of an operator, with its measured time. */
export interface RooflinePoint {
  readonly name: string;
  readonly kind: Kind;
  readonly flops: number;
  readonly bytes: number;
  readonly seconds: number;
}

/** Peak rates of a device: memory bandwidth and arithmetic. */
export interface Roof {
  readonly name: string;
  readonly flopsPerSecond: number;
  readonly bytesPerSecond: number;
}

const height = 320;
/**
 * Dot radii in pixels: `least` is the minimum radius, and `most` is the radius of an operator that takes the total time
 * of all operators.
 */
const radius = { least: 2.5, most: 34 };

const isDrawn = ({ flops, bytes, seconds }: RooflinePoint): boolean => [flops, bytes, seconds].every(isSize);

/** Returns the range of the positive values, extended by half a decade at both ends. */
const rangeWithMargin = (values: readonly number[]): readonly [number, number] => {
  const half = Math.sqrt(10);
  return [
    values.reduce((least, value) => Math.min(least, value), Infinity) / half,
    values.reduce((most, value) => Math.max(most, value), 0) * half,
  ];
};

/** Returns the number of points that cannot be drawn, because they have no flops, bytes or time. */
export const numUndrawablePoints = (points: readonly RooflinePoint[]): number =>
  points.filter((point) => !isDrawn(point)).length;

/**
 * Draws operators by flops per byte (→) and flops per second (↑), both logarithmic, under the roofline of a device: its
 * memory bandwidth and arithmetic peak. The area of a dot is proportional to its time. Points without flops, bytes or
 * time are omitted.
 *
 * Source: Williams, Waterman and Patterson, *Roofline*, CACM 52, 2009.
 */
export const rooflineChart = (
  points: readonly RooflinePoint[],
  { label, roof }: { readonly label: string; readonly roof?: Roof | undefined },
): string => {
  const drawn = points.filter(isDrawn).toSorted((a, b) => b.seconds - a.seconds);
  if (drawn.length === 0) return chart("roofline", label, 60, []);
  const total = drawn.reduce((sum, { seconds }) => sum + seconds, 0);
  const hasRoof = roof !== undefined && isSize(roof.flopsPerSecond) && isSize(roof.bytesPerSecond);
  const ridge = hasRoof ? roof.flopsPerSecond / roof.bytesPerSecond : undefined;
  const xs = rangeWithMargin([
    ...drawn.map(({ flops, bytes }) => flops / bytes),
    ...(ridge === undefined ? [] : [ridge]),
  ]);
  const ys = rangeWithMargin([
    ...drawn.map(({ flops, seconds }) => flops / seconds),
    ...(hasRoof ? [roof.flopsPerSecond] : []),
  ]);
  const x = (value: number): string => percent(logPosition(value, xs));
  const y = (value: number): number => pixel(height * (1 - logPosition(value, ys)));
  const grid = [
    ...logTicks(...xs, 7).map(
      (tick) =>
        `<line x1="${x(tick)}" x2="${x(tick)}" y1="0" y2="${height}"/><text x="${x(tick)}" y="${height + 16}" text-anchor="middle">${Number(tick.toPrecision(1))}</text>`,
    ),
    ...logTicks(...ys, 8).map(
      (tick) =>
        `<line x1="0" x2="100%" y1="${y(tick)}" y2="${y(tick)}"/><text x="-6" y="${y(tick) + 4}" text-anchor="end">${tickTexts([tick], decimalUnits)[0]!}</text>`,
    ),
  ];
  const slope = (): string => {
    // Between the left edge and the ridge, memory bandwidth is the limit.
    const least = roof!.bytesPerSecond * xs[0];
    return `<line x1="0" y1="${y(least)}" x2="${x(ridge!)}" y2="${y(roof!.flopsPerSecond)}"/><line x1="${x(ridge!)}" y1="${y(roof!.flopsPerSecond)}" x2="100%" y2="${y(roof!.flopsPerSecond)}"/>`;
  };
  const roofParts = hasRoof
    ? [
        `<g class="roof">${slope()}</g>`,
        `<text class="roof-name" x="100%" dx="-6" y="${y(roof.flopsPerSecond) - 7}" text-anchor="end">${rateText(roof.flopsPerSecond, "FLOP/s")}, ${rateText(roof.bytesPerSecond, "B/s")}</text>`,
      ]
    : [];
  const dots = drawn.map(({ name, kind, flops, bytes, seconds }) => {
    const words = `${name}: ${secondsText(seconds)}, ${rateText(flops / seconds, "FLOP/s")}, ${Number((flops / bytes).toPrecision(3))} FLOP/B`;
    const r = pixel(Math.max(radius.least, radius.most * Math.sqrt(seconds / total)));
    return `<circle class="k-${kind}" cx="${x(flops / bytes)}" cy="${y(flops / seconds)}" r="${r}"><title>${escapeText(words)}</title></circle>`;
  });
  return chart("roofline", label, height, [
    `<g class="ticks">${grid.join("")}</g>`,
    ...roofParts,
    `<g class="dots">${dots.join("")}</g>`,
    `<text class="axis-name" x="50%" y="${height + 34}" text-anchor="middle">flops per byte moved</text>`,
    `<text class="axis-name" x="-44" y="-8">FLOP/s</text>`,
  ]);
};
