import { escapeText } from "../html.ts";

/** A part of the width, 0 to 1, as SVG takes it: "12.34%". So charts fit every window without a script. */
export const percent = (part: number): string => `${Number((100 * (Number.isFinite(part) ? part : 0)).toFixed(4))}%`;

/** A tenth of a pixel is exact enough, and keeps pages small. */
export const pixel = (value: number): number => Math.round(10 * value) / 10;

/**
 * Whether a number can be drawn as a size: what is beyond these comes from no machine, and its products and quotients
 * leave the numbers.
 */
export const isSize = (value: number): boolean => value >= 1e-30 && value <= 1e30;

/** What an empty chart shows. */
const nothing = (words: string): string =>
  `<text x="50%" y="50%" text-anchor="middle" class="quiet">${escapeText(words)}</text>`;

/**
 * Frame a chart: as wide as its place, of a height in pixels. Labels of axes lie outside of it (`styles.ts` leaves
 * them the room).
 *
 * Own charts: Observable Plot 0.6 and Vega-Lite 6.5 draw at a width in pixels and in colours that are fixed, so a page
 * could follow neither its window nor light and dark without their script, and have neither flame charts nor timelines
 * of many spans. Plot needs a DOM to draw in, too (42 packages and jsdom; the two take 2 s to load), Vega-Lite 76
 * packages and Vega.
 */
export const chart = (name: string, label: string, height: number, parts: readonly string[], attributes = ""): string =>
  `<svg class="chart ${name}" width="100%" height="${height}" role="img" aria-label="${escapeText(label)}"${attributes}>${
    parts.length === 0 ? nothing("nothing to show") : parts.join("")
  }</svg>`;
