import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { median, type Summary } from "@skein/measuring";
import type { Figures, Outcome } from "./outcome.ts";
import { definitionOf, type Run } from "./run.ts";

/** A line of a results file: how a run came out. */
export interface Result {
  readonly name: string;
  readonly definition: string;
  /** Which one this is of several of the same run, for times that differ from run to run; 0, or none, begins anew. */
  readonly take?: number;
  /** When it ended, in ISO 8601, and on what. */
  readonly at: string;
  readonly machine: string;
  /** Of the job: what weights and order of samples follow from. */
  readonly seed: number;
  /** Commit of the code that ran, with `-dirty` where files outside of docs differed from it. */
  readonly commit: string;
  /** Of the whole process. */
  readonly seconds: number;
  readonly job: Run["job"];
  readonly outcome: Outcome;
}

/** The takes of each run as it is defined, by name and definition. */
export type Results = Map<string, readonly Result[]>;

const keyOf = ({ name, definition }: Pick<Result, "name" | "definition">): string => `${name} ${definition}`;

/** Lay a result to those of its run, or in their place where it begins anew. */
export const addResult = (results: Results, result: Result): void => {
  const key = keyOf(result);
  const earlier = (result.take ?? 0) === 0 ? [] : (results.get(key) ?? []);
  results.set(key, [...earlier, result]);
};

/** Results of a file. A line that an interruption has cut counts as none. */
export const readResults = (path: string): Results => {
  const results: Results = new Map();
  if (!existsSync(path)) return results;
  for (const line of readFileSync(path, "utf8").split("\n")) {
    try {
      addResult(results, JSON.parse(line) as Result);
    } catch {
      // cut: the run will be made again
    }
  }
  return results;
};

/** The takes of a run as it is defined now. */
export const takesOf = (results: Results, run: Run): readonly Result[] =>
  results.get(keyOf({ name: run.name, definition: definitionOf(run) })) ?? [];

/** The median of medians; as spread what one take wavers by or half of what lies between takes, whichever is more. */
const together = (summaries: readonly Summary[]): Summary => {
  const medians = summaries.map((summary) => summary.median);
  const apart = (Math.max(...medians) - Math.min(...medians)) / 2;
  return {
    median: median(medians),
    mad: Math.max(median(summaries.map(({ mad }) => mad)), apart),
    n: summaries.reduce((sum, { n }) => sum + n, 0),
  };
};

/** The result of a run as it is defined now: its last take, with the times of all that ended well. */
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
 * Whether a result stands: that of a run which ended by itself. What was refused, failed or took too long is tried
 * again.
 */
export const stands = (result: Result | undefined): boolean =>
  result?.outcome.kind === "done" || result?.outcome.kind === "diverged";

/** Add a line. It begins with a line end where the last line was cut. */
export const appendResult = (path: string, result: Result): void => {
  mkdirSync(dirname(path), { recursive: true });
  const cut = existsSync(path) && !/(^|\n)$/.test(readFileSync(path, "utf8"));
  appendFileSync(path, `${cut ? "\n" : ""}${JSON.stringify(result)}\n`);
};
