import { writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { formatPlot, type Plot } from "./plot.ts";
import { formatRangePlot, type RangePlot } from "./range-plot.ts";

/** File name of a plot, next to its page and with the page's name first. */
const plotFile = (page: string, name: string): string => `${basename(page, ".md")}-${name}.svg`;

/**
 * Writes each plot next to a page, with a file name from the page's name and the plot's. @returns titles and files for
 * the page.
 */
export const writePlots = (plots: readonly Plot[], page: string): { readonly title: string; readonly file: string }[] =>
  plots.map((plot) => {
    const file = plotFile(page, plot.name);
    writeFileSync(join(dirname(page), file), formatPlot(plot));
    return { title: plot.title, file };
  });

/** Writes a range plot next to a page. @returns the Markdown that shows the plot. */
export const plotWriter =
  (page: string): ((plot: RangePlot) => string) =>
  (plot) => {
    const file = plotFile(page, plot.name);
    writeFileSync(join(dirname(page), file), formatRangePlot(plot));
    return `![${plot.title}](./${file})`;
  };
