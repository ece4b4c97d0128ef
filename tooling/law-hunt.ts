import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { run } from "./check.ts";
import { repository } from "./repository.ts";
import { readJournal } from "./stages/test-journal.ts";

/** Time limit of a round in seconds. */
const limitSeconds = 7200;

export interface HuntArguments {
  /** Number of rounds, each with a different seed. */
  readonly times: number;
  /**
   * Substrings of paths. A file with property-based tests is used if its path contains one of these substrings. Empty:
   * all such files are used.
   */
  readonly filters: readonly string[];
}

const usage = "use: pnpm test:hunt [parts of paths] [--times N]; N is a whole number from 1, and 10 by default";

/** Parses the command line of the hunt for failing seeds. Returns a message if an argument is invalid. */
export const parseHuntArguments = (args: readonly string[]): HuntArguments | string => {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { times: { type: "string", default: "10" } },
    });
    const times = Number(values.times);
    return Number.isSafeInteger(times) && times >= 1
      ? { times, filters: positionals }
      : `--times is ${values.times}; ${usage}`;
  } catch (error) {
    return `${(error as Error).message}; ${usage}`;
  }
};

/** Whether a module imports fast-check, directly or through modules that it imports by relative paths. */
const usesFastCheck = (path: string, known: Map<string, boolean>): boolean => {
  const before = known.get(path);
  if (before !== undefined) return before;
  known.set(path, false); // prevents infinite recursion in import cycles
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  const found =
    text.includes('from "fast-check"') ||
    [...text.matchAll(/from "(\.[^"]+)"/g)].some(([, to]) => usesFastCheck(join(dirname(path), to!), known));
  known.set(path, found);
  return found;
};

/**
 * Returns the files with property-based tests (laws): test files that use fast-check, and test files named `*laws*`.
 */
export const lawFiles = (filters: readonly string[] = []): string[] => {
  const known = new Map<string, boolean>();
  return globSync("{packages,apps,benchmarks,examples,tooling}/**/*.test.ts", {
    cwd: repository,
    exclude: ["**/node_modules/**"],
  })
    .filter((file) => filters.length === 0 || filters.some((part) => file.includes(part)))
    .filter((file) => file.includes("laws") || usesFastCheck(join(repository, file), known))
    .toSorted();
};

/** A property-based test that failed with a seed. */
export interface FailedLaw {
  readonly file: string;
  /** Test name after the names of its suites, separated by " > ". Absent: the file failed outside of its tests. */
  readonly law?: string;
  readonly detail: string;
}

/**
 * Runs test files once, with the same seed for all property-based tests, and stops at the first failure.
 *
 * @param root Folder of vitest's configuration. Default: the repository.
 * @returns the failures. Tests that ran at the same time as the first failure may have failed, too.
 */
export const huntRound = async (
  files: readonly string[],
  seed: number,
  root: string = repository,
): Promise<FailedLaw[]> => {
  const folder = mkdtempSync(join(tmpdir(), "skein-hunt-"));
  const path = join(folder, "journal.jsonl");
  try {
    const { code, output } = await run(["vitest", "run", "--root", root, "--bail", "1", ...files], {
      seconds: limitSeconds,
      env: { SKEIN_TEST_JOURNAL: path, SKEIN_LAW_SEED: String(seed) },
    });
    const { checks } = readJournal(existsSync(path) ? readFileSync(path, "utf8") : "");
    const failed = checks
      .filter(({ status }) => status === "failed")
      .map(({ name, detail = "" }): FailedLaw => {
        const end = name.indexOf(": ");
        return end < 0 ? { file: name, detail } : { file: name.slice(0, end), law: name.slice(end + 2), detail };
      });
    return failed.length > 0 || code === 0 ? failed : [{ file: "vitest", detail: output.slice(-2000) }];
  } finally {
    rmSync(folder, { recursive: true });
  }
};

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Formats a failure: file, test name and seed, the error, and the command that repeats the failure. */
export const formatFailure = ({ file, law, detail }: FailedLaw, seed: number): string => {
  // vitest matches `-t` against the names of suites and test, joined by spaces.
  const pattern = law?.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll(" > ", ".*");
  return [
    `failed with seed ${seed}: ${file}${law === undefined ? "" : `: ${law}`}`,
    detail.trimEnd().replaceAll(/^/gm, "    "),
    `again: SKEIN_LAW_SEED=${seed} vitest run ${file}${pattern === undefined ? "" : ` -t ${quoted(pattern)}`}`,
  ].join("\n");
};
