import { escapeText } from "../html.ts";
import { secondsText, shareText } from "../quantities.ts";
import type { Kind } from "../tokens.ts";
import { chart, isSize, percent } from "./svg.ts";

/** A part of a bar. */
export interface Segment {
  readonly name: string;
  readonly kind: Kind;
  readonly seconds: number;
}

/** Below this part of the bar a name does not fit on a narrow window. */
const leastLabelled = 0.16;

/** What a bar is drawn with. */
export interface StackedBarOptions {
  readonly label: string;
  /** What shares are of. Default: the sum of the parts. */
  readonly wholeSeconds?: number | undefined;
  /** In pixels. Default: 34. */
  readonly height?: number | undefined;
}

const isShown = ({ seconds }: Segment): boolean => isSize(seconds);

/** One bar, split into times; what is zero or less has no part. */
export const stackedBar = (
  segments: readonly Segment[],
  {
    label,
    height = 34,
    wholeSeconds = segments.reduce((sum, one) => sum + (isShown(one) ? one.seconds : 0), 0),
  }: StackedBarOptions,
): string => {
  const shown = segments.filter(isShown);
  const whole = shown.reduce((sum, { seconds }) => sum + seconds, 0);
  let begin = 0;
  const parts = shown.map(({ name, kind, seconds }) => {
    const [x, width] = [begin / whole, seconds / whole];
    begin += seconds;
    const words = `${name}: ${secondsText(seconds)}, ${shareText(seconds / wholeSeconds)}`;
    const text = width < leastLabelled ? "" : `<text x="6" y="${height / 2 + 4}">${escapeText(name)}</text>`;
    return `<svg x="${percent(x)}" width="${percent(width)}" height="${height}" class="mark k-${kind}"><title>${escapeText(words)}</title><rect width="100%" height="100%"/>${text}</svg>`;
  });
  return chart("stacked-bar", label, height, parts);
};
