import { parseArgs } from "node:util";
import type { Study } from "./study.ts";
import type { Run } from "./run.ts";

/** Command-line options of a study. */
export interface StudyOptions {
  readonly only: readonly string[];
  readonly seeds: readonly number[];
  readonly takes: number;
  /** Whether to include runs that no claim depends on. */
  readonly all: boolean;
  readonly quick: boolean;
  readonly again: boolean;
  readonly results: string | undefined;
  readonly page: string | undefined;
  readonly list: boolean;
  readonly check: boolean;
  readonly help: boolean;
}

/** Returns the path of a study's results. With --quick the path is in a folder that git ignores. */
export const resultsPath = (study: string, quick: boolean): string =>
  quick ? `runs/benchmarks/${study}-quick.jsonl` : `docs/benchmarks/${study}.jsonl`;

export const usageOf = ({ name, about, seeds, takes, after = [] }: Study<Run>): string => `${about}${
  after.length === 0 ? "" : `\nIt takes what ${after.map((study) => `\`pnpm bench ${study}\``).join(" and ")} found.`
}

  pnpm bench ${name} [--only PATTERN,PATTERN] [--seeds N] [--takes N] [--all] [--quick] [--again] [--results FILE] [--page FILE] [--list] [--check]

  --only     which runs; words with slashes between them must all begin a segment of a run's name
  --seeds    how many seeds each run is made with; default: ${seeds}, with --quick 1
  --takes    how often each run is made, where times differ from one to the next: the page has medians of takes; default: ${takes}, with --quick 1
  --all      also what no claim of the documents rests on, which takes several times as long
  --quick    a few steps of each: whether all of them run, nothing more; results go to ${resultsPath(name, true)}, and no page is written
  --again    also runs that have a result
  --results  where results are added, and looked for: an interrupted study goes on. Default: ${resultsPath(name, false)}
  --page     the page with all results of the file, and its plots. Default: docs/benchmarks/<date>-${name}.md
  --list     print names and what there is of each, and how long the rest would take
  --check    let the trainer check every job, and run none`;

/** Parses the command-line options. @returns the options, or an error message if they are invalid. */
export const parseStudyOptions = (study: Study<Run>, args: readonly string[]): StudyOptions | string => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      seeds: { type: "string" },
      takes: { type: "string" },
      all: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      again: { type: "boolean", default: false },
      results: { type: "string" },
      page: { type: "string" },
      list: { type: "boolean", default: false },
      check: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const { quick } = values;
  const numSeeds = Number(values.seeds ?? (quick ? 1 : study.seeds));
  if (!Number.isInteger(numSeeds) || numSeeds < 1)
    return `--seeds ${values.seeds}: how many seeds each run is made with is a whole number from 1; use ${study.seeds}`;
  if (numSeeds > (study.maxSeeds ?? numSeeds))
    return `--seeds ${values.seeds}: ${study.name} is made with ${study.maxSeeds} at most; leave it out`;
  const takes = Number(values.takes ?? (quick ? 1 : study.takes));
  if (!Number.isInteger(takes) || takes < 1)
    return `--takes ${values.takes}: how often each run is made is a whole number from 1; use ${study.takes}`;
  return {
    ...values,
    only: values.only?.split(",") ?? [],
    seeds: Array.from({ length: numSeeds }, (_, index) => index + 1),
    takes,
    results: values.results,
    page: values.page,
  };
};

/** Formats the command with the options that differ from their defaults. */
export const commandOf = (study: Study<Run>, { seeds, takes, all, quick }: StudyOptions): string =>
  [
    `pnpm bench ${study.name}`,
    ...(seeds.length === (quick ? 1 : study.seeds) ? [] : [`--seeds ${seeds.length}`]),
    ...(takes === (quick ? 1 : study.takes) ? [] : [`--takes ${takes}`]),
    ...(all ? ["--all"] : []),
    ...(quick ? ["--quick"] : []),
  ].join(" ");
