import { writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { formatPlot, type Plot } from "./plot.ts";
import { formatRangePlot, type RangePlot } from "./range-plot.ts";

/** The file of a plot, beside its page and named after it. */
const plotFile = (page: string, name: string): string => `${basename(page, ".md")}-${name}.svg`;

/** Write each plot beside a page, under the page's name and its own. @returns what the page says of them. */
export const writePlots = (plots: readonly Plot[], page: string): { readonly title: string; readonly file: string }[] =>
  plots.map((plot) => {
    const file = plotFile(page, plot.name);
    writeFileSync(join(dirname(page), file), formatPlot(plot));
    return { title: plot.title, file };
  });

/** Writes a plot of ranges beside a page. @returns the Markdown that shows it. */
export const drawBeside =
  (page: string): ((plot: RangePlot) => string) =>
  (plot) => {
    const file = plotFile(page, plot.name);
    writeFileSync(join(dirname(page), file), formatRangePlot(plot));
    return `![${plot.title}](./${file})`;
  };
