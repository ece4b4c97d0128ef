import { commitOfCode } from "./commit.ts";
import { estimateSeconds, formatDuration } from "./estimate.ts";
import { makeRun } from "./make-run.ts";
import {
  addResult,
  appendResult,
  readResults,
  type Result,
  resultOf,
  type Results,
  stands,
  takesOf,
} from "./results-file.ts";
import { isSelected, type Run } from "./run.ts";
import { commandOf, parseStudyOptions, resultsPath, type StudyOptions, usageOf } from "./study-options.ts";
import type { Study } from "./study.ts";
import { Interrupted } from "./run-program.ts";
import { complaintOf } from "./trainer.ts";
import { writeStudyPage } from "./write-study-page.ts";

/** Formats the progress line of a result. */
const formatProgress = ({ outcome }: Result): string => {
  if (outcome.kind !== "done") return `${outcome.kind}: ${outcome.reason}`;
  const { testAccuracy, bitsPerByte, stepSeconds } = outcome;
  return [
    ...(testAccuracy === undefined ? [] : [`${(100 * testAccuracy).toFixed(2)} % right`]),
    ...(bitsPerByte === undefined ? [] : [`${bitsPerByte.toFixed(4)} bits per byte`]),
    `${(1000 * stepSeconds.median).toFixed(1)} ms per step`,
  ].join(", ");
};

interface DueRun<Planned> {
  readonly run: Planned;
  readonly take: number;
}

/**
 * Returns the repetitions that are still missing. Every run is done once before any run is repeated, so that a
 * temporary load on the machine affects one repetition of each run.
 */
const dueOf = <Planned extends Run>(
  selected: readonly Planned[],
  results: Results,
  { takes, again }: StudyOptions,
): DueRun<Planned>[] => {
  const standing = (run: Planned): number => (again ? 0 : takesOf(results, run).filter(stands).length);
  return Array.from({ length: takes }, (_, take) =>
    selected.filter((run) => standing(run) <= take).map((run) => ({ run, take })),
  ).flat();
};

const list = (selected: readonly Run[], results: Results, due: readonly DueRun<Run>[]): void => {
  for (const run of selected) {
    const result = resultOf(results, run);
    console.log(`${run.name}  ${result === undefined ? (run.lacks ?? "–") : formatProgress(result)}`);
  }
  console.log(
    `${due.length} runs to make, about ${formatDuration(
      estimateSeconds(
        due.map(({ run }) => run),
        results,
      ),
    )}`,
  );
};

const check = async (selected: readonly Run[]): Promise<number> => {
  let numRefused = 0;
  for (const run of selected) {
    const complaint = await complaintOf(run);
    if (complaint !== undefined) numRefused++;
    console.log(`${run.name}  ${complaint ?? "valid"}`);
  }
  return numRefused === 0 ? 0 : 1;
};

/** Runs a study with command-line arguments. @returns the exit code. */
export const runStudy = async <Planned extends Run>(
  study: Study<Planned>,
  args: readonly string[],
): Promise<number> => {
  const options = parseStudyOptions(study as Study<Run>, args);
  if (typeof options === "string") {
    console.error(options);
    return 2;
  }
  if (options.help) {
    console.log(usageOf(study as Study<Run>));
    return 0;
  }
  const { quick, seeds, only, takes, all } = options;
  const path = options.results ?? resultsPath(study.name, quick);
  const page =
    options.page ?? (quick ? undefined : `docs/benchmarks/${new Date().toISOString().slice(0, 10)}-${study.name}.md`);
  const results = readResults(path);
  const found = new Map<string, Results>([[study.name, results]]);
  const resultsOf = (other: string): Results => {
    const read = found.get(other) ?? readResults(resultsPath(other, quick));
    found.set(other, read);
    return read;
  };
  const planned = (): Planned[] => study.plan({ quick, seeds, resultsOf }).filter(({ core }) => all || core);
  let runs = planned();
  const selected = runs.filter((run) => isSelected(run, only));
  if (selected.length === 0) {
    console.error(
      `--only ${only.join(",")}: no run is meant by it; --list prints the names${all ? "" : " of those that claims rest on, with --all those of all"}`,
    );
    return 2;
  }
  let due = dueOf(selected, results, options);
  if (options.list) {
    list(selected, results, due);
    return 0;
  }
  if (options.check) return check(selected);
  const lacking = due.filter(({ run }) => run.lacks !== undefined);
  if (lacking.length > 0) {
    console.error(
      `${lacking.length} of ${due.length} runs cannot be made yet; ${lacking[0]!.run.name}: ${lacking[0]!.run.lacks}`,
    );
    return 2;
  }
  const numSelected = selected.length * takes;
  if (due.length < numSelected)
    process.stderr.write(`${numSelected - due.length} of ${numSelected} runs have a result in ${path}\n`);
  const estimate = formatDuration(
    estimateSeconds(
      due.map(({ run }) => run),
      results,
    ),
  );
  process.stderr.write(`${due.length} runs to make, about ${estimate}, one after the other; results go to ${path}\n`);
  const commit = commitOfCode();
  const command = commandOf(study as Study<Run>, options);
  const write = (): void => void (page === undefined || writeStudyPage(study, page, command, runs, results, resultsOf));
  const tried = new Set<string>(); // a failed run is not repeated at once
  try {
    while (due.length > 0) {
      for (const [index, { run, take }] of due.entries()) {
        process.stderr.write(`${index + 1}/${due.length} ${run.name} …\n`);
        const result = await makeRun(run, take, commit);
        tried.add(run.name);
        appendResult(path, result);
        addResult(results, result);
        process.stderr.write(`  ${formatProgress(result)} (${result.seconds.toFixed(0)} s)\n`);
        write(); // write after each run, so that an interrupted study leaves a page with its results so far
      }
      if (study.isAdaptive !== true) break;
      runs = planned();
      due = dueOf(
        runs.filter((run) => isSelected(run, only) && !tried.has(run.name)),
        results,
        { ...options, again: false },
      );
    }
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    process.stderr.write(`interrupted; the same command goes on, with what is in ${path}\n`);
    return 130;
  }
  write();
  return 0;
};
