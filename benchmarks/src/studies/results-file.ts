import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { median, type Summary } from "@skein/measuring";
import type { Figures, Outcome } from "./outcome.ts";
import { definitionOf, type Run } from "./run.ts";

/** Line of a results file: the outcome of a run. */
export interface Result {
  readonly name: string;
  readonly definition: string;
  /**
   * Number of the repetition (take), for runs that are repeated because times vary between repetitions. 0 or absent:
   * the result replaces earlier repetitions.
   */
  readonly take?: number;
  /** End time of the run in ISO 8601. */
  readonly at: string;
  readonly machine: string;
  /** Seed of the job, which determines weights and the order of samples. */
  readonly seed: number;
  /** Commit of the code that ran, with `-dirty` if files outside docs differed from the commit. */
  readonly commit: string;
  /** Seconds of the whole process, including startup. */
  readonly seconds: number;
  readonly job: Run["job"];
  readonly outcome: Outcome;
}

/** Results of all repetitions of each run, by the run's name and definition. */
export type Results = Map<string, readonly Result[]>;

const keyOf = ({ name, definition }: Pick<Result, "name" | "definition">): string => `${name} ${definition}`;

/**
 * Adds a result to the repetitions of its run. A result with `take` 0 or without `take` replaces the earlier
 * repetitions.
 */
export const addResult = (results: Results, result: Result): void => {
  const key = keyOf(result);
  const earlier = (result.take ?? 0) === 0 ? [] : (results.get(key) ?? []);
  results.set(key, [...earlier, result]);
};

/** Reads the results of a file. Skips lines that an interruption truncated. */
export const readResults = (path: string): Results => {
  const results: Results = new Map();
  if (!existsSync(path)) return results;
  for (const line of readFileSync(path, "utf8").split("\n")) {
    try {
      addResult(results, JSON.parse(line) as Result);
    } catch {
      // truncated line: its run will be repeated
    }
  }
  return results;
};

/** Returns the results of all repetitions of a run with its current definition. */
export const takesOf = (results: Results, run: Run): readonly Result[] =>
  results.get(keyOf({ name: run.name, definition: definitionOf(run) })) ?? [];

/**
 * Combines the step times of several repetitions. The combined median is the median of the repetitions' medians. The
 * combined deviation is the median deviation within a repetition, or half the range of the medians if that is larger.
 */
const together = (summaries: readonly Summary[]): Summary => {
  const medians = summaries.map((summary) => summary.median);
  const halfRange = (Math.max(...medians) - Math.min(...medians)) / 2;
  return {
    median: median(medians),
    mad: Math.max(median(summaries.map(({ mad }) => mad)), halfRange),
    n: summaries.reduce((sum, { n }) => sum + n, 0),
  };
};

/**
 * Returns the result of a run with its current definition: the last repetition, with the times of all successful
 * repetitions combined. Undefined if the run has no result.
 */
export const resultOf = (results: Results, run: Run): Result | undefined => {
  const takes = takesOf(results, run);
  const last = takes.at(-1);
  const done = takes.flatMap(({ outcome }): Figures[] => (outcome.kind === "done" ? [outcome] : []));
  if (last?.outcome.kind !== "done" || done.length === 1) return last;
  const exposed = done.flatMap(({ exposedSeconds }) => exposedSeconds ?? []);
  const cycles = done.flatMap(({ cycleSeconds }) => cycleSeconds ?? []);
  const { stageSeconds } = last.outcome;
  return {
    ...last,
    seconds: takes.reduce((sum, { seconds }) => sum + seconds, 0),
    outcome: {
      ...last.outcome,
      stepSeconds: together(done.map(({ stepSeconds }) => stepSeconds)),
      ...(exposed.length > 0 && { exposedSeconds: together(exposed) }),
      ...(cycles.length > 0 && { cycleSeconds: together(cycles) }),
      ...(stageSeconds !== undefined && {
        stageSeconds: Object.fromEntries(
          Object.keys(stageSeconds).map((stage) => [
            stage,
            together(done.flatMap((figures) => figures.stageSeconds?.[stage] ?? [])),
          ]),
        ),
      }),
    },
  };
};

/**
 * Whether a result is final, because the run completed or diverged. Runs that were rejected, failed or took too long
 * are repeated.
 */
export const stands = (result: Result | undefined): boolean =>
  result?.outcome.kind === "done" || result?.outcome.kind === "diverged";

/** Appends a result as a line. Starts a new line first if the last line was truncated. */
export const appendResult = (path: string, result: Result): void => {
  mkdirSync(dirname(path), { recursive: true });
  const cut = existsSync(path) && !/(^|\n)$/.test(readFileSync(path, "utf8"));
  appendFileSync(path, `${cut ? "\n" : ""}${JSON.stringify(result)}\n`);
};
