import { histogramChart } from "../charts/histogram-chart.ts";
import { escapeText } from "../html.ts";
import { digitsText } from "../quantities.ts";
import type { Histogram, ParameterHistograms, RunReport } from "../run-report.ts";
import type { Kind } from "../tokens.ts";

/** Kind of a parameter's histogram: its values (`weights`), or the values of its gradient (`gradients`). */
export type HistogramKind = "weights" | "gradients";

/** Kind of mark whose color is used for each kind of histogram. */
const colours: Readonly<Record<HistogramKind, Kind>> = { weights: "forward", gradients: "backward" };

/** Describes a histogram in one line, without counts of 0: "mean 0.1, norm 3, 2 zeros, 1 not finite". */
export const describeHistogram = ({ mean, norm, zeros, nonFinite }: Histogram): string =>
  [
    ...(mean === null ? [] : [`mean ${digitsText(mean, 3)}`]),
    ...(norm === null ? [] : [`norm ${digitsText(norm, 3)}`]),
    ...(zeros > 0 ? [`${zeros} ${zeros === 1 ? "zero" : "zeros"}`] : []),
    ...(nonFinite > 0 ? [`${nonFinite} not finite`] : []),
  ].join(", ") || "no values";

const figure = (path: string, kind: HistogramKind, histogram: Histogram | undefined): string =>
  histogram === undefined
    ? ""
    : `<figure>${histogramChart(histogram, { label: `${kind} of ${path}: ${describeHistogram(histogram)}`, kind: colours[kind] })}<figcaption class="quiet">${kind}: ${describeHistogram(histogram)}</figcaption></figure>`;

const parameterItem = ({ path, shape, weights, gradients }: ParameterHistograms): string =>
  `<li><h3>${escapeText(path)} <span class="quiet">[${shape.join(", ")}]</span></h3><div class="pair">${figure(path, "weights", weights)}${figure(path, "gradients", gradients)}</div></li>`;

/**
 * Maximum number of parameters to show, so that the page stays readable; `histograms.jsonl` contains all parameters.
 */
const maxParameters = 500;

/** Renders the section of histograms; empty text if the run has no histograms. */
export const histogramSection = ({ histograms }: RunReport): string => {
  if (histograms === undefined || histograms.parameters.length === 0) return "";
  const { step, parameters } = histograms;
  const visible = parameters.slice(0, maxParameters);
  const about = [
    `after step ${step}; gradients as passed to the optimizer of the next step`,
    ...(visible.length < parameters.length ? [`the first ${visible.length} of ${parameters.length} parameters`] : []),
  ].join("; ");
  return `<section aria-labelledby="histograms-heading"><h2 id="histograms-heading">Weights and gradients</h2><p class="quiet">${about}</p><ul class="histograms">${visible.map(parameterItem).join("")}</ul></section>`;
};
