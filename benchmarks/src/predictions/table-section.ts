import { median } from "@skein/measuring";
import type { PredictedCell } from "../published/calibrate-cluster.ts";
import { allReduceMethods, summarizeErrors } from "../published/held-out.ts";
import { comparePairs, isMisordered, minDifference } from "../published/orderings.ts";
import { methods, modelNames, networks, worldSizes } from "../published/seven-methods.ts";
import { alignColumns } from "../report/align-columns.ts";
import type { RangePlot } from "../report/range-plot.ts";
import { formatError, formatRate, formatShare, networkTitles } from "./format.ts";
import { isAsked } from "./results.ts";

/** Returns a plot of predicted divided by measured iteration time, by method and model. */
export const ratiosPlot = (predicted: readonly PredictedCell[]): RangePlot => ({
  name: "ratios",
  title: "Predicted over measured time of an iteration, 4 to 16 GPUs over three networks",
  axis: "predicted time / measured time",
  scale: "linear",
  reference: 1,
  legend:
    "marks: medians of nine cells, lines: least to greatest; filled where 15 % was asked, hollow where nothing was",
  rows: methods.flatMap((method) =>
    modelNames.map((model) => {
      const own = predicted.filter((cell) => cell.method === method && cell.model === model);
      const ratios = own.map(({ relativeError }) => 1 + relativeError).toSorted((a, b) => a - b);
      const worst = summarizeErrors(own).worst.relativeError;
      return {
        label: `${method}, ${model}`,
        value: median(ratios),
        low: ratios[0]!,
        high: ratios.at(-1)!,
        solid: allReduceMethods.includes(method),
        note: `worst ${formatError(worst)}`,
      };
    }),
  ),
});

const cellTable = (predicted: readonly PredictedCell[]): string =>
  alignColumns([
    ["method", ...networks.flatMap((network) => worldSizes.map((size) => `${networkTitles[network]}, ${size} GPUs`))],
    ...methods.map((method) => [
      method,
      ...networks.flatMap((network) =>
        worldSizes.map((size) => {
          const cell = predicted.find(
            (one) => one.method === method && one.network === network && one.worldSize === size,
          )!;
          const { samplesPerSecond, relativeError } = cell;
          return `${formatRate(samplesPerSecond)} → ${formatRate(samplesPerSecond / (1 + relativeError))} (${formatError(relativeError)})`;
        }),
      ),
    ]),
  ]);

const summaryTable = (predicted: readonly PredictedCell[]): string =>
  alignColumns([
    ["method", "cells", "median error", "worst", "of", "15 % asked"],
    ...methods.map((method) => {
      const { count, median: middle, worst } = summarizeErrors(predicted.filter((cell) => cell.method === method));
      return [
        method,
        String(count),
        formatShare(middle),
        formatError(worst.relativeError),
        `${worst.model}, ${worst.worldSize} GPUs, ${networkTitles[worst.network]}`,
        isAsked({ method }) ? (Math.abs(worst.relativeError) <= 0.15 ? "yes, met" : "yes, missed") : "",
      ];
    }),
  ]);

/** Returns the section that compares measured and predicted rates, cell by cell. */
export const tableSection = (predicted: readonly PredictedCell[]): string => {
  const three = comparePairs(predicted.filter(isAsked));
  const seven = comparePairs(predicted);
  const wrong = seven.filter(isMisordered);
  return `## The seven-method table, measured → predicted

Samples per second of the whole cluster, measured → predicted, and the error of the predicted time of an iteration. All of it was calibrated on; the next section holds out.

${summaryTable(predicted)}

Order: of ${three.length} pairs of BSP-A2A, WFBP-A2A and MG-WFBP in one column that differ by more than ${formatShare(minDifference)} in the table, ${three.filter(isMisordered).length} stand in the wrong order; of
all ${seven.length} pairs of the seven methods ${wrong.length} do (${formatShare(wrong.length / seven.length)}).

${modelNames.map((model) => `### ${model}\n\n${cellTable(predicted.filter((cell) => cell.model === model))}`).join("\n\n")}`;
};
