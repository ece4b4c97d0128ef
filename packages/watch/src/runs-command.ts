import { existsSync } from "node:fs";
import { commandAction, ConfigError, exitCodes, type GlobalOptions, writeStderr, writeStdout } from "@skein/cli/node";
import { digitsText, printable, secondsText, shareText, type TextColumn, textTable } from "@skein/report";
import type { RunFacts } from "@skein/run-files/node";
import type { Command } from "commander";
import { differingOptions } from "./page/differing-options.ts";
import { matchesFilter } from "./page/filter-runs.ts";
import { WatchedRuns } from "./watched-runs.ts";

interface RunsOptions extends GlobalOptions {
  readonly filter?: string;
}

/** Maximum number of differing options shown in a terminal. */
const maxOptions = 6;

const numberText = (value: number | null, text: (value: number) => string): string =>
  value === null ? "–" : text(value);

/** Formats runs as lines of a table, newest first. @param width Number of terminal columns. */
export const formatRuns = (runs: readonly RunFacts[], width: number): string[] => {
  const differing = differingOptions(runs).filter(({ key }) => key !== "name");
  const columns = differing.slice(0, maxOptions);
  const four = (value: number): string => digitsText(value, 4);
  const rows = runs.map((run, row) => [
    printable(run.id),
    run.state,
    numberText(run.step, String),
    numberText(run.loss, four),
    numberText(run.testLoss, four),
    numberText(run.accuracy, shareText),
    secondsText(run.seconds),
    ...columns.map(({ values }) => printable(values[row] ?? "–")),
  ]);
  const names = [
    ["run", 9],
    ["state", 8],
    ["step", 7],
    ["loss", 6],
    ["held-out loss", 5],
    ["accuracy", 4],
    ["trained for", 3],
  ] as const;
  const more = differing.length - columns.length;
  return [
    ...textTable(
      [
        ...names.map(
          ([heading, weight], index): TextColumn => ({
            heading,
            weight,
            numeric: index > 1,
            cutAt: "middle",
            least: 12,
          }),
        ),
        ...columns.map(
          ({ key }): TextColumn => ({ heading: printable(key), weight: 1, numeric: false, cutAt: "middle", least: 6 }),
        ),
      ],
      rows,
      width,
    ),
    ...(more > 0 ? [`and ${more} more options in which they differ: --json lists all`] : []),
  ];
};

/** Implements `skein-train runs`. */
const runsCommand = async (folder: string, options: RunsOptions): Promise<number> => {
  if (!existsSync(folder))
    throw new ConfigError([`${folder} does not exist; name a folder that holds runs, such as runs`]);
  const watched = new WatchedRuns(folder);
  try {
    await watched.find();
    for (const id of watched.ids) await watched.load(id);
  } finally {
    await watched.close();
  }
  const runs = watched.facts
    .filter((run) => matchesFilter(run, options.filter ?? ""))
    .toSorted((a, b) => b.writtenAt - a.writtenAt || (a.id < b.id ? -1 : 1));
  if (options.json === true) {
    const listed = runs.map(({ rows: _, generation: __, loaded: ___, ...run }) => run);
    writeStdout(`${JSON.stringify(listed)}\n`);
  } else if (runs.length === 0)
    writeStdout(`no run ${options.filter === undefined ? "" : "that matches the filter "}in ${folder}\n`);
  else {
    for (const line of formatRuns(runs, process.stdout.columns ?? 200)) writeStdout(`${line}\n`);
    for (const { id, fault } of runs) if (fault !== null) writeStderr(`${printable(`${id}: ${fault}`)}\n`);
  }
  return exitCodes.ok;
};

/** Adds the command `skein-train runs`. @param finish Receives the exit code. */
export const addRunsCommand = (program: Command, finish: (code: number) => void): void => {
  program
    .command("runs")
    .description("list runs, their progress, and the options in which they differ")
    .argument("[folder]", "folder of runs, at any depth", "runs")
    .option("--filter <words>", "words of names and states, and options: optimizer.kind=adam batch>=64")
    .addHelpText("after", "\nExample:\n  skein-train runs runs --filter optimizer.kind=adam")
    .action(commandAction(finish, runsCommand));
};
