import { escapeText } from "../html.ts";

/**
 * Formats a fraction, 0 to 1, as an SVG length: "12.34%". Charts with such lengths fit every window without a script.
 */
export const percent = (part: number): string => `${Number((100 * (Number.isFinite(part) ? part : 0)).toFixed(4))}%`;

/** Rounds to a tenth of a pixel, which is accurate enough and keeps pages small. */
export const pixel = (value: number): number => Math.round(10 * value) / 10;

/**
 * Returns whether a number can be drawn as a size. Numbers outside these bounds are not real measurements, and their
 * products and quotients would overflow or underflow.
 */
export const isSize = (value: number): boolean => value >= 1e-30 && value <= 1e30;

/** Returns the content of an empty chart: a message. */
const placeholder = (words: string): string =>
  `<text x="50%" y="50%" text-anchor="middle" class="quiet">${escapeText(words)}</text>`;

/**
 * Wraps the parts of a chart in an SVG element that is as wide as its container, with a height in pixels. Axis labels
 * are outside of this element; `styles.ts` has margins for them.
 *
 * Why not a library: Observable Plot 0.6 and Vega-Lite 6.5 draw with a fixed width in pixels and fixed colors, so
 * charts could not adapt to the window or to light and dark schemes without a script, and these libraries have neither
 * flame charts nor timelines with many spans. Plot also needs a DOM (42 packages and jsdom; the two take 2 s to load),
 * and Vega-Lite needs 76 packages and Vega.
 */
export const chart = (name: string, label: string, height: number, parts: readonly string[], attributes = ""): string =>
  `<svg class="chart ${name}" width="100%" height="${height}" role="img" aria-label="${escapeText(label)}"${attributes}>${
    parts.length === 0 ? placeholder("nothing to show") : parts.join("")
  }</svg>`;
