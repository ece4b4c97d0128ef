import type { Check } from "../check.ts";

/**
 * An event of a test run. Each event is written as a line when it happens, so that an aborted run still has results.
 */
export type JournalEntry =
  | { readonly at: "file-began"; readonly file: string }
  | { readonly at: "test-began"; readonly file: string; readonly test: string }
  | {
      readonly at: "test-ended";
      readonly file: string;
      readonly test: string;
      readonly status: Check["status"];
      readonly detail?: string;
    }
  /** End of a test file. `errors`: failures to load the file, or errors outside of its tests. */
  | {
      readonly at: "file-ended";
      readonly file: string;
      readonly milliseconds: number;
      readonly errors: readonly string[];
    }
  /** End of the test run. `errors`: errors outside of all tests. */
  | { readonly at: "run-ended"; readonly errors: readonly string[] };

export interface Journal {
  /** Checks of the run: one per finished test, and one failure per file or run that failed outside of its tests. */
  readonly checks: readonly Check[];
  /** Names of tests and files that had started but not finished. */
  readonly running: readonly string[];
  /** Whether the run finished. */
  readonly ended: boolean;
  /** Duration of each file, slowest first. */
  readonly files: readonly { readonly file: string; readonly milliseconds: number }[];
}

const entriesOf = (text: string): JournalEntry[] =>
  text.split("\n").flatMap((line) => {
    try {
      return [JSON.parse(line) as JournalEntry];
    } catch {
      // The last line of a killed run may be incomplete.
      return [];
    }
  });

/** Parses a journal, complete or truncated. */
export const readJournal = (text: string): Journal => {
  const checks: Check[] = [];
  const running = new Set<string>();
  const files: { file: string; milliseconds: number }[] = [];
  let ended = false;
  for (const entry of entriesOf(text)) {
    if (entry.at === "file-began") running.add(entry.file);
    else if (entry.at === "test-began") running.add(`${entry.file}: ${entry.test}`);
    else if (entry.at === "test-ended") {
      const { file, test, status, detail } = entry;
      running.delete(`${file}: ${test}`);
      checks.push({ name: `${file}: ${test}`, status, ...(detail === undefined ? {} : { detail }) });
    } else if (entry.at === "file-ended") {
      running.delete(entry.file);
      files.push({ file: entry.file, milliseconds: entry.milliseconds });
      for (const detail of entry.errors) checks.push({ name: entry.file, status: "failed", detail });
    } else {
      ended = true;
      for (const detail of entry.errors) checks.push({ name: "vitest", status: "failed", detail });
    }
  }
  // A file is listed only if none of its tests is listed.
  const tests = [...running].filter((name) => name.includes(": "));
  const alone = [...running].filter(
    (name) => !name.includes(": ") && !tests.some((test) => test.startsWith(`${name}: `)),
  );
  return {
    checks,
    running: [...tests, ...alone],
    ended,
    files: files.toSorted((a, b) => b.milliseconds - a.milliseconds),
  };
};
