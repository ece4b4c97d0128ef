import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import type { RangePlot } from "./range-plot.ts";
import { plotWriter } from "./write-plots.ts";

/** Metadata of a page that the page shows, and a function that writes its plots. */
export interface PageFacts {
  readonly date: string;
  readonly command: string;
  readonly seconds: number;
  /** Writes a plot next to the page. @returns Markdown that shows the plot. */
  readonly draw: (plot: RangePlot) => string;
}

/** A command that writes one page without measurements. */
export interface PageCommand<Results> {
  /** Name of the command after `pnpm bench`, and the end of the page's file name after the date. */
  readonly name: string;
  /** One-line description of the command. */
  readonly purpose: string;
  readonly findResults: () => Results;
  readonly format: (results: Results, facts: PageFacts) => string;
}

interface Options {
  readonly page?: string | undefined;
  readonly help?: boolean | undefined;
}

/** Parses the command-line options. @returns the options, or an error message if they are invalid. */
const parseOptions = (name: string, args: readonly string[]): Options | string => {
  try {
    return parseArgs({ args: [...args], options: { page: { type: "string" }, help: { type: "boolean", short: "h" } } })
      .values;
  } catch (error) {
    return `${(error as Error).message}; see pnpm bench ${name} --help`;
  }
};

/** Runs the command line of a page. @returns the exit code. */
export const runPageCommand = <Results>(
  { name, purpose, findResults, format }: PageCommand<Results>,
  args: readonly string[],
): number => {
  const values = parseOptions(name, args);
  if (typeof values === "string") {
    console.error(values);
    return 2;
  }
  if (values.help) {
    console.log(`${purpose}

  pnpm bench ${name} [--page FILE]

  --page   where the page goes, with its plots beside it; default: docs/benchmarks/<date>-${name}.md`);
    return 0;
  }
  const date = new Date().toISOString().slice(0, 10);
  const page = values.page ?? `docs/benchmarks/${date}-${name}.md`;
  // Create the folder before the fits, which take minutes, so that an invalid folder is reported at once.
  mkdirSync(dirname(page), { recursive: true });
  const begin = performance.now();
  const results = findResults();
  const seconds = (performance.now() - begin) / 1000;
  writeFileSync(page, format(results, { date, command: `pnpm bench ${name}`, seconds, draw: plotWriter(page) }));
  console.log(`wrote ${page}`);
  return 0;
};
