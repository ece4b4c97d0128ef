import { median } from "@skein/measuring";
import { summarizeErrors } from "../published/held-out.ts";
import { methods } from "../published/seven-methods.ts";
import { alignColumns } from "../report/align-columns.ts";
import type { RangePlot } from "../report/range-plot.ts";
import { formatError, formatShare, networkTitles } from "./format.ts";
import type { HeldOut, Rehearsed } from "./results.ts";

/** Returns a plot of prediction errors for cells that the calibration did not use. */
export const heldOutPlot = (heldOut: readonly HeldOut[]): RangePlot => ({
  name: "held-out",
  title: "Errors of BSP, WFBP and MG-WFBP where the calibration did not see the cells",
  axis: "error of the predicted time of an iteration, %",
  scale: "linear",
  reference: 0,
  legend: "marks: medians, lines: least to worst; the stroke: the 15 % that were asked",
  rows: heldOut.map(({ fold, predicted }) => {
    const errors = predicted.map(({ relativeError }) => 100 * Math.abs(relativeError)).toSorted((a, b) => a - b);
    return {
      label: fold.title,
      value: median(errors),
      low: errors[0]!,
      high: errors.at(-1)!,
      limit: 15,
      solid: errors.at(-1)! <= 15,
      note: `${errors.length} cells`,
    };
  }),
});

const foldTable = (heldOut: readonly HeldOut[]): string =>
  alignColumns([
    ["held out", "cells", "median error", "worst", "of"],
    ...heldOut.map(({ fold, predicted }) => {
      const { count, median: middle, worst } = summarizeErrors(predicted);
      const where = `${worst.model}, ${worst.method}, ${worst.worldSize} GPUs, ${networkTitles[worst.network]}`;
      return [fold.title, String(count), formatShare(middle), formatError(worst.relativeError), where];
    }),
  ]);

const worstOf = (errors: readonly number[]): string =>
  formatError(errors.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a)));

const medianOf = (errors: readonly number[]): string => formatShare(median(errors.map(Math.abs)));

const rehearsalTable = (rehearsed: readonly Rehearsed[]): string =>
  alignColumns([
    [
      "method",
      "median, by the model",
      "worst",
      "median, with the ratio of 8 GPUs",
      "worst",
      "median, no model: 4 → 8 repeated",
      "worst",
    ],
    ...methods.map((method) => {
      const own = rehearsed.filter(({ cell }) => cell.method === method);
      const ways = [own.map((one) => one.byModel), own.map((one) => one.withRatio), own.map((one) => one.repeated)];
      return [method, ...ways.flatMap((errors) => [medianOf(errors), worstOf(errors)])];
    }),
  ]);

/** Returns the section on predictions of cells that the calibration did not use. */
export const heldOutSection = (
  heldOut: readonly HeldOut[],
  rehearsed: readonly Rehearsed[],
  plot: string,
): string => `## Held out

Rows BSP-A2A, WFBP-A2A and MG-WFBP, predicted by a calibration that begins at data sheets and does not see them. \`4 GPUs\` holds out all three columns of one node, which measure the same hardware. Of a whole
network nobody can tell what it carries without a measurement, so \`both BERTs over …\` leaves ResNet-50 to show it.

${plot}

${foldTable(heldOut)}

The rehearsal of the prediction below: all seven rows of 16 GPUs from 4 and 8 alone, by the model, by the model times what it was off at 8 GPUs, and
without a model. The step from 4 to 8 GPUs leaves the node, that from 8 to 16 does not, so repeating it is a low bar here; from 8 to 16 to 32 it is a high one.

${rehearsalTable(rehearsed)}`;
