import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Check, run } from "../check.ts";
import { repository } from "../repository.ts";
import { type Journal, readJournal } from "./test-journal.ts";

/**
 * Time limit of the complete test run in seconds, in case a test hangs. The limit is below the limit of CI, so that the
 * names of running tests can be reported.
 */
const limitSeconds = 4000;
const numSlowest = 10;

const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(1).padStart(8)} s`;

/** Returns the reasons why a run failed even if all of its tests passed. */
export const unfinished = ({ ended, running, checks }: Journal, code: number, limit: number): Check[] => {
  const fail = (detail: string): Check[] => [{ name: "vitest", status: "failed", detail }];
  const still =
    running.length === 0
      ? "nothing was running"
      : `still running were:\n${running.map((name) => `  ${name}`).join("\n")}`;
  if (code === 124)
    return fail(`the tests were stopped at the limit of ${limit} s after ${checks.length} tests; ${still}`);
  if (!ended)
    return fail(`vitest exited with code ${code} after ${checks.length} tests, before the end of the run; ${still}`);
  return code !== 0 && !checks.some(({ status }) => status === "failed") ? fail(`exit code ${code}`) : [];
};

/** Returns the test files that only `pnpm test:full` runs. */
export const fullOnlyFiles = (): string[] =>
  globSync("{packages,apps,benchmarks,examples,tooling}/**/*.full.test.ts", {
    cwd: repository,
    exclude: ["**/node_modules/**"],
  }).toSorted();

export interface VitestStageOptions {
  /** Whether to run the files `*.full.test.ts` as well. */
  readonly full: boolean;
  /** Whether command-line tests start the built program, which users install. Otherwise, the tests start the source. */
  readonly built: boolean;
}

/** Runs all test files of the workspace, shows vitest's output, and then lists the slowest files. */
export const vitestStage = async ({ full, built }: VitestStageOptions): Promise<Check[]> => {
  const folder = mkdtempSync(join(tmpdir(), "skein-vitest-"));
  const path = join(folder, "journal.jsonl");
  const env = {
    SKEIN_TEST_JOURNAL: path,
    SKEIN_TESTS: full ? "full" : "default",
    SKEIN_PROGRAM: built ? "built" : "source",
  };
  try {
    const { code } = await run(["vitest", "run"], { seconds: limitSeconds, show: true, env });
    const journal = readJournal(existsSync(path) ? readFileSync(path, "utf8") : "");
    console.log(`\nthe ${numSlowest} slowest files:`);
    for (const { file, milliseconds } of journal.files.slice(0, numSlowest))
      console.log(`${seconds(milliseconds)}  ${file}`);
    return [...journal.checks, ...unfinished(journal, code, limitSeconds)];
  } finally {
    rmSync(folder, { recursive: true });
  }
};
