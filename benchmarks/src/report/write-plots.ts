import { writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { formatPlot, type Plot } from "./plot.ts";

/** The file of a plot, beside its page and named after it. */
export const plotFile = (page: string, name: string): string => `${basename(page, ".md")}-${name}.svg`;

/** Write each plot beside a page, under the page's name and its own. @returns what the page says of them. */
export const writePlots = (plots: readonly Plot[], page: string): { readonly title: string; readonly file: string }[] =>
  plots.map((plot) => {
    const file = plotFile(page, plot.name);
    writeFileSync(join(dirname(page), file), formatPlot(plot));
    return { title: plot.title, file };
  });
