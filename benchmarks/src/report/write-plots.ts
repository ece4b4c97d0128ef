import { writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { formatPlot, type Plot } from "./plot.ts";
import { formatRangePlot, type RangePlot } from "./range-plot.ts";

/** Returns the file name of a plot: the page's name followed by the plot's name. */
const plotFile = (page: string, name: string): string => `${basename(page, ".md")}-${name}.svg`;

/** Writes plots next to a page, in files named after the page and the plot. @returns titles and files for the page. */
export const writePlots = (plots: readonly Plot[], page: string): { readonly title: string; readonly file: string }[] =>
  plots.map((plot) => {
    const file = plotFile(page, plot.name);
    writeFileSync(join(dirname(page), file), formatPlot(plot));
    return { title: plot.title, file };
  });

/** Returns a function that writes a range plot next to a page. @returns Markdown that shows the plot. */
export const plotWriter =
  (page: string): ((plot: RangePlot) => string) =>
  (plot) => {
    const file = plotFile(page, plot.name);
    writeFileSync(join(dirname(page), file), formatRangePlot(plot));
    return `![${plot.title}](./${file})`;
  };
