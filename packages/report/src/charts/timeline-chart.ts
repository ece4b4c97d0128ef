import { escapeText } from "../html.ts";
import { timeUnits } from "../quantities.ts";
import { type Kind, kinds } from "../tokens.ts";
import { type Interval, rowsOfIntervals } from "./interval-rows.ts";
import { chart, isSize, percent } from "./svg.ts";
import { linearTicks, tickTexts } from "./ticks.ts";

/** A stretch of a track. `label` says what it is, without its times. */
export interface TimelineSpan extends Interval {
  readonly label: string;
  readonly kind: Kind;
}

/** One row of a timeline; tracks of one group lie together under its name. */
export interface TimelineTrack {
  readonly group: string;
  readonly name: string;
  readonly spans: readonly TimelineSpan[];
  /** Laid under the measured ones, hatched. */
  readonly predicted?: readonly TimelineSpan[] | undefined;
}

/**
 * Coordinates are whole parts of this many of the time shown: less than browsers' 24 bits, and 100 ps of a step of a
 * millisecond.
 */
const units = 10_000_000;
const heights = { axis: 22, group: 20, track: 18, predicted: 11, gap: 6 };
/** How a track of several rows grows, and until which height. */
const rowHeight = { measured: 9, predicted: 5, most: 72 };
/** Of a row in its track's own coordinates, and of the span in it. */
const row = { height: 10, span: 8.6 };

/** The range of time that a timeline shows: from its begin, or from the earliest span. */
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
 * Spans of one kind are one path, a thick line each: ten bytes a span instead of a hundred. `data-l` says which label
 * each has.
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

/** Times before the step are negative. */
const isTime = (seconds: number): boolean => seconds === 0 || isSize(Math.abs(seconds));

const isDrawn = ({ startSeconds, endSeconds }: Interval): boolean =>
  isTime(startSeconds) && isTime(endSeconds) && endSeconds >= startSeconds;

/**
 * Draw what happened when: a track per row of input, further rows in it where spans lie over each other, and under it
 * what was predicted.
 *
 * Static; `zoomTimeline` makes it zoom, pan and tell what lies under the pointer. Its tracks are SVGs whose `viewBox`
 * is the time in view.
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
    const place = `y="${y}" height="${height}"`;
    const words = predicted ? "predicted" : name;
    parts.push(
      `<text class="track-name${predicted ? " foreseen" : ""}" x="-8" y="${y + height / 2 + 4}" text-anchor="end">${escapeText(words)}</text>`,
      `<rect class="ground" width="100%" ${place}/>`,
      `<svg class="track" ${place} width="100%" viewBox="0 0 ${units} ${row.height * Math.max(1, count)}" preserveAspectRatio="none" stroke-width="${row.span}" data-name="${escapeText(
        predicted ? `${name}, predicted` : name,
      )}">${paths(spans, rows, range, labelOf)}</svg>`,
    );
    if (predicted) parts.push(`<rect class="hatched" width="100%" ${place}/>`);
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
