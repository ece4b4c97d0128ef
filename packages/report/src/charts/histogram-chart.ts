import { digitsText } from "../quantities.ts";
import type { Histogram } from "../run-report.ts";
import type { Kind } from "../tokens.ts";
import { chart, percent } from "./svg.ts";

export interface HistogramChartOptions {
  readonly label: string;
  readonly kind: Kind;
  /** Whether the height of a bar is the logarithm of its count, so that rare values are visible. Default: false. */
  readonly isLogarithmic?: boolean | undefined;
}

const heights = { bars: 44, texts: 15 };
/** Minimum height of a bar in pixels, so that a bin with one value among millions is visible. */
const minHeight = 2;

/**
 * Draws a histogram as bars from the smallest to the largest value, with a line at zero.
 *
 * The chart has a few hundred bytes for any number of values, because all bars share one path.
 */
export const histogramChart = (
  { min, max, counts }: Pick<Histogram, "min" | "max" | "counts">,
  { label, kind, isLogarithmic = false }: HistogramChartOptions,
): string => {
  const most = counts.reduce((a, b) => Math.max(a, b), 0);
  if (min === null || max === null || !(most > 0)) return chart("histogram", label, heights.bars, []);
  const heightOf = (count: number): number =>
    count === 0
      ? 0
      : Math.max(
          minHeight,
          Math.round(heights.bars * (isLogarithmic ? Math.log1p(count) / Math.log1p(most) : count / most)),
        );
  const bars = counts.map((count, bin) => {
    const height = heightOf(count);
    return height === 0 ? "" : `M${bin} ${heights.bars}v${-height}h1v${height}z`;
  });
  const isAround = min < 0 && max > 0;
  const zero = percent(-min / (max - min));
  const below = heights.bars + heights.texts - 3;
  return chart("histogram", label, heights.bars + heights.texts, [
    `<rect class="ground" width="100%" height="${heights.bars}"/>`,
    `<svg width="100%" height="${heights.bars}" viewBox="0 0 ${counts.length} ${heights.bars}" preserveAspectRatio="none"><path class="bars k-${kind}" d="${bars.join("")}"/></svg>`,
    isAround ? `<line class="zero" x1="${zero}" x2="${zero}" y1="0" y2="${heights.bars}"/>` : "",
    `<g class="ticks"><text x="0" y="${below}">${digitsText(min, 3)}</text><text x="100%" y="${below}" text-anchor="end">${digitsText(max, 3)}</text></g>`,
  ]);
};

/** CSS rules for histograms. */
export const histogramRules = `.histogram .ground{fill:var(--panel)}
.histogram .bars{fill:var(--fill);stroke:var(--edge);stroke-width:.5px;vector-effect:non-scaling-stroke}
.histogram .zero{stroke:var(--text);stroke-dasharray:2 2}`;
