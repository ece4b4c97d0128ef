import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Outcome } from "./outcome.ts";
import { definitionOf, type Run } from "./run.ts";

/** A line of a results file: how a run came out. */
export interface Result {
  readonly name: string;
  readonly definition: string;
  /** When it ended, in ISO 8601, and on what. */
  readonly at: string;
  readonly machine: string;
  /** Of the whole process. */
  readonly seconds: number;
  readonly job: Run["job"];
  readonly outcome: Outcome;
}

/** Results of a file, by name and definition; of several, the last. A line that an interruption has cut counts as none. */
export const readResults = (path: string): Map<string, Result> => {
  const results = new Map<string, Result>();
  if (!existsSync(path)) return results;
  for (const line of readFileSync(path, "utf8").split("\n")) {
    try {
      const result = JSON.parse(line) as Result;
      results.set(`${result.name} ${result.definition}`, result);
    } catch {
      // cut: the run will be made again
    }
  }
  return results;
};

/** The result of a run as it is defined now. */
export const resultOf = (results: ReadonlyMap<string, Result>, run: Run): Result | undefined =>
  results.get(`${run.name} ${definitionOf(run)}`);

/** Whether a result stands: that of a run which ended by itself. What was refused, failed or took too long is tried again. */
export const stands = (result: Result | undefined): boolean => result?.outcome.kind === "done" || result?.outcome.kind === "diverged";

/** Add a line. It begins with a line end where the last line was cut. */
export const appendResult = (path: string, result: Result): void => {
  mkdirSync(dirname(path), { recursive: true });
  const cut = existsSync(path) && !/(^|\n)$/.test(readFileSync(path, "utf8"));
  appendFileSync(path, `${cut ? "\n" : ""}${JSON.stringify(result)}\n`);
};
