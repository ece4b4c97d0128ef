import { escapeText } from "../html.ts";
import { byteUnits, bytesText } from "../quantities.ts";
import { chart, isSize, percent, pixel } from "./svg.ts";
import { linearTicks, tickTexts } from "./ticks.ts";

/** A value that is in memory from node `from` to node `to` of a step. Both are node indices, inclusive. */
export interface Lifetime {
  readonly name: string;
  readonly bytes: number;
  readonly from: number;
  readonly to: number;
}

/** Memory use to draw: bytes that are always in use, live bytes at each node of a step, and lifetimes of values. */
export interface MemoryRows {
  readonly residentBytes: number;
  readonly liveBytes: readonly number[];
  readonly lifetimes: readonly Lifetime[];
}

const heights = { area: 200, gap: 26, lifetime: 24 };
/** Maximum number of points in the drawn area, about the pixel width of a large window. */
const maxPositions = 2000;

/** Returns the index of the first node with the most live bytes; −1 if there are no nodes. */
export const peakPosition = (liveBytes: readonly number[]): number =>
  liveBytes.reduce((best, bytes, at) => (bytes > (liveBytes[best] ?? -1) ? at : best), -1);

/**
 * Downsamples the live bytes: each group of consecutive nodes is replaced by its maximum, so that peaks remain visible.
 */
const downsampled = (values: readonly number[]): readonly number[] => {
  if (values.length <= maxPositions) return values;
  return Array.from({ length: maxPositions }, (_, i) =>
    values
      .slice(Math.floor((i * values.length) / maxPositions), Math.floor(((i + 1) * values.length) / maxPositions))
      .reduce((most, value) => Math.max(most, value), 0),
  );
};

/**
 * Draws memory over a step: an area of live bytes above the bytes that are always in use, a mark at the peak, and the
 * lifetimes of values below.
 */
export const memoryChart = (rows: MemoryRows, { label }: { readonly label: string }): string => {
  const sizeOf = (bytes: number): number => (isSize(bytes) ? bytes : 0);
  const residentBytes = sizeOf(rows.residentBytes);
  const liveBytes = rows.liveBytes.map(sizeOf);
  const lifetimes = rows.lifetimes.filter(({ from, to }) => from >= 0 && to >= from && to < Infinity);
  const peak = peakPosition(liveBytes);
  const most = residentBytes + (liveBytes[peak] ?? 0);
  if (!isSize(most)) return chart("memory", label, 60, []);
  const positions = Math.max(1, liveBytes.length);
  const y = (bytes: number): number => pixel(heights.area * (1 - bytes / (1.08 * most)));
  const scaled = (bytes: number): number => Math.round(1000 * (1 - bytes / (1.08 * most)));
  const steps = downsampled(liveBytes);
  const outline = steps.map((bytes, at) => `V${scaled(residentBytes + bytes)}H${at + 1}`).join("");
  // Ticks are at integer multiples of the largest binary unit that is not larger than the peak.
  const unit = 1024 ** Math.floor(Math.log2(most) / 10);
  const sizes = linearTicks(0, (1.08 * most) / unit, 6).map((tick) => tick * unit);
  const texts = tickTexts(sizes, byteUnits);
  const grid = sizes.map(
    (size, index) =>
      `<line x1="0" x2="100%" y1="${y(size)}" y2="${y(size)}"/><text x="-6" y="${y(size) + 4}" text-anchor="end">${texts[index]!}</text>`,
  );
  const area = `<svg class="area" width="100%" height="${heights.area}" viewBox="0 0 ${steps.length} 1000" preserveAspectRatio="none"><path class="live" d="M0 ${scaled(residentBytes)}${outline}V${scaled(residentBytes)}Z"/><path class="resident" d="M0 ${scaled(residentBytes)}H${steps.length}V1000H0Z"/></svg>`;
  const peakX = percent((peak + 0.5) / positions);
  const beyondMiddle = peak >= positions / 2;
  const mark =
    peak < 0
      ? ""
      : `<g class="peak"><line x1="${peakX}" x2="${peakX}" y1="${y(most)}" y2="100%"/><text x="${peakX}" dx="${beyondMiddle ? -6 : 6}" y="${y(most) - 5}" text-anchor="${beyondMiddle ? "end" : "start"}">${bytesText(most)} at node ${peak}</text></g>`;
  const bars = lifetimes.map(({ name, bytes, from, to }, index) => {
    const y = heights.area + heights.gap + index * heights.lifetime;
    const [begin, end] = [from / positions, (to + 1) / positions];
    return `<g><title>${escapeText(`${name}: ${bytesText(bytes)}, nodes ${from} to ${to}`)}</title><text y="${y + 11}">${bytesText(bytes)} ${escapeText(
      name,
    )}</text><rect class="lifetime" x="${percent(begin)}" y="${y + 16}" width="${percent(end - begin)}" height="4"/></g>`;
  });
  const nodes = linearTicks(0, positions, 6).map(
    (tick) => `<text x="${percent(tick / positions)}" y="${heights.area + 15}" text-anchor="middle">${tick}</text>`,
  );
  return chart("memory", label, heights.area + heights.gap + lifetimes.length * heights.lifetime, [
    `<g class="ticks">${grid.join("")}<text x="-6" y="${heights.area + 15}" text-anchor="end">node</text>${nodes.join("")}</g>`,
    ...(steps.length === 0 ? [] : [area]),
    ...bars,
    mark,
  ]);
};
