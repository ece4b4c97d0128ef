import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { drawBeside } from "../report/write-plots.ts";
import { predictionsPage } from "./page.ts";
import { findTableResults } from "./results.ts";

const usage = `Set the cost model beside published measurements: calibrate, hold out, predict what was not measured.

  pnpm bench predictions [--page FILE]

  --page   where the page goes, with its plots beside it; default: docs/benchmarks/<date>-predictions.md`;

interface Options {
  readonly page?: string | undefined;
  readonly help?: boolean | undefined;
}

/** @returns the options, or what is wrong with them. */
const parseOptions = (args: readonly string[]): Options | string => {
  try {
    return parseArgs({ args: [...args], options: { page: { type: "string" }, help: { type: "boolean", short: "h" } } })
      .values;
  } catch (error) {
    return `${(error as Error).message}; see pnpm bench predictions --help`;
  }
};

/** The command line of the page. @returns the exit code. */
export const predictions = (args: readonly string[]): number => {
  const values = parseOptions(args);
  if (typeof values === "string") {
    console.error(values);
    return 2;
  }
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const date = new Date().toISOString().slice(0, 10);
  const page = values.page ?? `docs/benchmarks/${date}-predictions.md`;
  // Before the minutes of fitting: a folder that cannot be is a mistake to hear of at once.
  mkdirSync(dirname(page), { recursive: true });
  const begin = performance.now();
  const results = findTableResults((line) => process.stderr.write(`${line} …\n`));
  const seconds = (performance.now() - begin) / 1000;
  const text = predictionsPage(results, {
    date,
    command: "pnpm bench predictions",
    seconds,
    draw: drawBeside(page),
  });
  writeFileSync(page, text);
  console.log(`wrote ${page}`);
  return 0;
};
