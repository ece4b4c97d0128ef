import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { type Check, repository, run } from "../check.ts";

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[] | null;
    }[];
  }[];
}

/** Turn vitest's JSON report into checks. A file that could not be loaded counts as one failure. */
export const reportChecks = (report: Report): Check[] =>
  report.testResults.flatMap(({ name, status, message, assertionResults }): Check[] => {
    const file = relative(repository, name);
    const failedToLoad: Check[] =
      status === "failed" && !assertionResults.some((test) => test.status === "failed")
        ? [{ name: file, status: "failed", detail: message }]
        : [];
    const tests = assertionResults.map(({ fullName, status: outcome, failureMessages }): Check => {
      const title = `${file}: ${fullName}`;
      if (outcome === "passed") return { name: title, status: "passed" };
      if (outcome === "failed") return { name: title, status: "failed", detail: failureMessages?.[0] ?? "" };
      return { name: title, status: "skipped" };
    });
    return [...tests, ...failedToLoad];
  });

/** Run every test file of the workspace, showing vitest's own output. */
export const vitestStage = async (): Promise<Check[]> => {
  const folder = mkdtempSync(join(tmpdir(), "skein-vitest-"));
  const file = join(folder, "report.json");
  try {
    const { code } = await run(["vitest", "run", "--reporter=default", "--reporter=json", `--outputFile.json=${file}`], {
      seconds: 3000,
      show: true,
    });
    const checks = reportChecks(JSON.parse(readFileSync(file, "utf8")));
    const unexplained: Check[] =
      code !== 0 && !checks.some(({ status }) => status === "failed")
        ? [{ name: "vitest", status: "failed", detail: `exit code ${code}` }]
        : [];
    return [...checks, ...unexplained];
  } finally {
    rmSync(folder, { recursive: true });
  }
};
