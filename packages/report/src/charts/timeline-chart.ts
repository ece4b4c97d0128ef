import { escapeText } from "../html.ts";
import { timeUnits } from "../quantities.ts";
import { type Kind, kinds } from "../tokens.ts";
import { type Interval, rowsOfIntervals } from "./interval-rows.ts";
import { chart, isSize, percent } from "./svg.ts";
import { linearTicks, tickTexts } from "./ticks.ts";

/** A time interval on a track. `label` describes the span, without its times. */
export interface TimelineSpan extends Interval {
  readonly label: string;
  readonly kind: Kind;
}

/** A row of a timeline. Tracks with the same group are adjacent, below the name of the group. */
export interface TimelineTrack {
  readonly group: string;
  readonly name: string;
  readonly spans: readonly TimelineSpan[];
  /** Predicted spans, which are drawn hatched below the measured spans. */
  readonly predicted?: readonly TimelineSpan[] | undefined;
}

/**
 * Number of horizontal coordinate units in the whole time range. Coordinates are integers from 0 to this number, which
 * fit into the 24 significant bits of browsers' floats. For a step of a millisecond, one unit is 100 ps.
 */
const units = 10_000_000;
const heights = { axis: 22, group: 20, track: 18, predicted: 11, gap: 6 };
/**
 * Heights in pixels for tracks with several rows. `measured` and `predicted`: height of one row of measured or
 * predicted spans. `most`: maximum height of the track.
 */
const rowHeight = { measured: 9, predicted: 5, most: 72 };
/** Height of a row, and of a span in a row, in the coordinates of the track. */
const row = { height: 10, span: 8.6 };

/**
 * Returns the time range of a timeline: from 0, or from the earliest start if a span starts before 0, to the latest
 * end.
 */
const rangeOf = (tracks: readonly TimelineTrack[]): Interval => {
  let [startSeconds, endSeconds] = [0, 0];
  for (const { spans, predicted = [] } of tracks)
    for (const list of [spans, predicted])
      for (const span of list) {
        startSeconds = Math.min(startSeconds, span.startSeconds);
        endSeconds = Math.max(endSeconds, span.endSeconds);
      }
  return { startSeconds, endSeconds };
};

/**
 * Draws all spans of a kind as one path of thick lines, with ten bytes per span instead of a hundred. `data-l` contains
 * the index of each span's label.
 */
const paths = (
  spans: readonly TimelineSpan[],
  rows: readonly number[],
  range: Interval,
  labelOf: (label: string) => number,
): string => {
  const scale = units / (range.endSeconds - range.startSeconds);
  return kinds
    .map((kind) => {
      const lines: string[] = [];
      const labels: number[] = [];
      for (const [index, span] of spans.entries()) {
        if (span.kind !== kind) continue;
        const from = Math.round((span.startSeconds - range.startSeconds) * scale);
        const length = Math.max(1, Math.round((span.endSeconds - span.startSeconds) * scale));
        lines.push(`M${from} ${row.height * (rows[index]! + 0.5)}h${length}`);
        labels.push(labelOf(span.label));
      }
      return lines.length === 0 ? "" : `<path class="k-${kind}" d="${lines.join("")}" data-l="${labels.join(" ")}"/>`;
    })
    .join("");
};

/** Returns whether a time can be drawn. Spans that begin before the step have negative times. */
const isTime = (seconds: number): boolean => seconds === 0 || isSize(Math.abs(seconds));

const isDrawn = ({ startSeconds, endSeconds }: Interval): boolean =>
  isTime(startSeconds) && isTime(endSeconds) && endSeconds >= startSeconds;

/**
 * Draws spans over time, with one row of the chart per track. A track has several rows if its spans overlap, and its
 * predicted spans are below its measured spans.
 *
 * The SVG is static; `zoomTimeline` adds zooming, panning and tooltips. Each track is a nested SVG whose `viewBox` is
 * the visible time range.
 */
export const timelineChart = (tracks: readonly TimelineTrack[], { label }: { readonly label: string }): string => {
  const drawn = tracks.map((track) => ({
    ...track,
    spans: track.spans.filter(isDrawn),
    predicted: track.predicted?.filter(isDrawn),
  }));
  const range = rangeOf(drawn);
  const duration = range.endSeconds - range.startSeconds;
  if (!isSize(duration)) return chart("timeline", label, 60, []);
  const numbers = new Map<string, number>();
  const labelOf = (text: string): number => {
    const known = numbers.get(text) ?? numbers.size;
    numbers.set(text, known);
    return known;
  };
  const parts: string[] = [];
  let y = heights.axis;
  let group: string | undefined;
  const track = (spans: readonly TimelineSpan[], name: string, predicted: boolean): void => {
    const { rows, count } = rowsOfIntervals(spans);
    const one = predicted ? heights.predicted : heights.track;
    const height =
      count <= 1
        ? one
        : Math.max(one, Math.min(rowHeight.most, count * (predicted ? rowHeight.predicted : rowHeight.measured)));
    const box = `y="${y}" height="${height}"`;
    const words = predicted ? "predicted" : name;
    parts.push(
      `<text class="track-name${predicted ? " predicted-name" : ""}" x="-8" y="${y + height / 2 + 4}" text-anchor="end">${escapeText(words)}</text>`,
      `<rect class="ground" width="100%" ${box}/>`,
      `<svg class="track" ${box} width="100%" viewBox="0 0 ${units} ${row.height * Math.max(1, count)}" preserveAspectRatio="none" stroke-width="${row.span}" data-name="${escapeText(
        predicted ? `${name}, predicted` : name,
      )}">${paths(spans, rows, range, labelOf)}</svg>`,
    );
    if (predicted) parts.push(`<rect class="hatched" width="100%" ${box}/>`);
    y += height + (predicted ? heights.gap : 1);
  };
  for (const { group: own, name, spans, predicted } of drawn) {
    if (own !== group) {
      group = own;
      y += heights.gap;
      parts.push(`<text class="group-name" x="0" y="${y + 13}">${escapeText(own)}</text>`);
      y += heights.group;
    }
    track(spans, name, false);
    if (predicted === undefined) y += heights.gap;
    else track(predicted, name, true);
  }
  const times = linearTicks(range.startSeconds, range.endSeconds, 4);
  const texts = tickTexts(times, timeUnits);
  const ticks = times.map((tick, index) => {
    const x = percent((tick - range.startSeconds) / duration);
    return `<line x1="${x}" x2="${x}" y1="${heights.axis - 6}" y2="100%"/><text x="${x}" y="12" text-anchor="middle">${texts[index]!}</text>`;
  });
  const hatch = `<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="3" height="6" class="hatch"/></pattern></defs>`;
  const data = ` data-units="${units}" data-start="${range.startSeconds}" data-end="${range.endSeconds}" data-labels="${[...numbers.keys()].map(escapeText).join("&#10;")}"`;
  return chart("timeline", label, y, [hatch, `<g class="ticks">${ticks.join("")}</g>`, ...parts], data);
};
