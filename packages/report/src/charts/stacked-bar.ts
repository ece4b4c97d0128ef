import { escapeText } from "../html.ts";
import { secondsText, shareText } from "../quantities.ts";
import type { Kind } from "../tokens.ts";
import { chart, isSize, percent } from "./svg.ts";

/** A segment of a stacked bar. */
export interface Segment {
  readonly name: string;
  readonly kind: Kind;
  readonly seconds: number;
}

/**
 * Minimum width of a segment with a visible name, as a fraction of the bar's width, so that the name fits in a narrow
 * window.
 */
const minLabelled = 0.16;

/** Options of a stacked bar. */
export interface StackedBarOptions {
  readonly label: string;
  /** Total seconds that correspond to 100 %. Default: the sum of the segments. */
  readonly wholeSeconds?: number | undefined;
  /** Height of the bar in pixels. Default: 34. */
  readonly height?: number | undefined;
}

const isVisible = ({ seconds }: Segment): boolean => isSize(seconds);

/** Draws a bar that is divided into segments of time. Segments of zero or negative time are omitted. */
export const stackedBar = (
  segments: readonly Segment[],
  {
    label,
    height = 34,
    wholeSeconds = segments.reduce((sum, one) => sum + (isVisible(one) ? one.seconds : 0), 0),
  }: StackedBarOptions,
): string => {
  const visible = segments.filter(isVisible);
  const whole = visible.reduce((sum, { seconds }) => sum + seconds, 0);
  let begin = 0;
  const parts = visible.map(({ name, kind, seconds }) => {
    const [x, width] = [begin / whole, seconds / whole];
    begin += seconds;
    const words = `${name}: ${secondsText(seconds)}, ${shareText(seconds / wholeSeconds)}`;
    const text = width < minLabelled ? "" : `<text x="6" y="${height / 2 + 4}">${escapeText(name)}</text>`;
    return `<svg x="${percent(x)}" width="${percent(width)}" height="${height}" class="mark k-${kind}"><title>${escapeText(words)}</title><rect width="100%" height="100%"/>${text}</svg>`;
  });
  return chart("stacked-bar", label, height, parts);
};
