import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { commandCheck, run } from "../check.ts";
import { repository } from "../repository.ts";
import { typescriptBlocks } from "./examples.ts";
import { type JournalEntry, readJournal } from "./test-journal.ts";
import { fullOnlyFiles, unfinished } from "./vitest.ts";

const journal = (entries: readonly JournalEntry[]): string =>
  entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");

const began: readonly JournalEntry[] = [
  { at: "file-began", file: "a.test.ts" },
  { at: "test-began", file: "a.test.ts", test: "one" },
  { at: "test-ended", file: "a.test.ts", test: "one", status: "passed" },
  { at: "test-began", file: "a.test.ts", test: "two" },
];

test("returns one check per test, and a failure for a file or run that fails outside of its tests", () => {
  const read = readJournal(
    journal([
      ...began,
      { at: "file-began", file: "b.test.ts" },
      { at: "test-ended", file: "a.test.ts", test: "two", status: "failed", detail: "1 is not 2" },
      { at: "file-ended", file: "a.test.ts", milliseconds: 20, errors: [] },
      { at: "file-ended", file: "b.test.ts", milliseconds: 30, errors: ["no such module"] },
      { at: "run-ended", errors: ["uncaught error"] },
    ]),
  );
  expect(read.checks).toEqual([
    { name: "a.test.ts: one", status: "passed" },
    { name: "a.test.ts: two", status: "failed", detail: "1 is not 2" },
    { name: "b.test.ts", status: "failed", detail: "no such module" },
    { name: "vitest", status: "failed", detail: "uncaught error" },
  ]);
  expect(read).toMatchObject({ ended: true, running: [], files: [{ file: "b.test.ts" }, { file: "a.test.ts" }] });
  expect(unfinished(read, 1, 60)).toEqual([]);
});

test("reports an aborted run as a failure that names the running tests", () => {
  const cut = readJournal(`${journal([...began, { at: "file-began", file: "b.test.ts" }])}{"at":"test-en`);
  expect(cut).toMatchObject({ ended: false, running: ["a.test.ts: two", "b.test.ts"], checks: [{ status: "passed" }] });
  const [failure] = unfinished(cut, 124, 60);
  expect(failure).toMatchObject({
    status: "failed",
    detail: expect.stringMatching(/stopped at the limit of 60 s after 1 tests.*a\.test\.ts: two/s),
  });
  expect(unfinished(cut, 1, 60)[0]!.detail).toContain("before the end of the run");
});

test("reports a nonzero exit code without a failed test as a failure", () => {
  const whole = readJournal(journal([{ at: "run-ended", errors: [] }]));
  expect(unfinished(whole, 0, 60)).toEqual([]);
  expect(unfinished(whole, 1, 60)).toHaveLength(1);
});

test("writes the journal during the run: hooks, skips, and the test during which vitest was killed", async () => {
  const folder = mkdtempSync(join(repository, "node_modules", ".journal-"));
  try {
    const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
    const path = join(folder, "journal.jsonl");
    const reporter = join(repository, "tooling/journal-reporter.ts");
    write("package.json", `{ "type": "module" }`);
    write(
      "vitest.config.ts",
      `import { JournalReporter } from ${JSON.stringify(reporter)};
       export default { test: { pool: "forks", maxWorkers: 1, include: ["*.test.ts"], exclude: [], reporters: [new JournalReporter(${JSON.stringify(path)})] } };`,
    );
    write(
      "cut.test.ts",
      `import { readFileSync } from "node:fs";
       import { setTimeout } from "node:timers/promises";
       import { beforeAll, describe, expect, test } from "vitest";
       test("holds", () => {});
       test.skip("is skipped", () => {});
       test("fails", () => expect(1).toBe(2));
       describe("suite", () => { beforeAll(() => { throw new Error("hook"); }); test("behind a hook", () => {}); });
       test("ends the run", async () => {
         while (!readFileSync(${JSON.stringify(path)}, "utf8").includes("ends the run")) await setTimeout(20);
         process.kill(process.ppid, "SIGKILL");
         await setTimeout(60_000);
       });`,
    );
    const { code } = await run(["vitest", "run", "--root", folder], { seconds: 60 });
    expect(code).not.toBe(0);
    const { checks, running, ended } = readJournal(readFileSync(path, "utf8"));
    const name = (test: string): string => `${relative(repository, join(folder, "cut.test.ts"))}: ${test}`;
    expect(checks).toEqual([
      { name: name("holds"), status: "passed" },
      { name: name("is skipped"), status: "skipped" },
      { name: name("fails"), status: "failed", detail: expect.stringContaining("expected 1 to be 2") },
      { name: name("suite > behind a hook"), status: "skipped" },
    ]);
    expect(ended).toBe(false);
    expect(running).toEqual([name("ends the run")]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("excludes the files of the full run from the default run", async () => {
  const { output } = await run(["vitest", "list", "--filesOnly", "--json"], { env: { SKEIN_TESTS: "default" } });
  const files = new Set((JSON.parse(output) as { file: string }[]).map(({ file }) => relative(repository, file)));
  expect(files.has("tooling/stages/stages.test.ts")).toBe(true);
  expect(fullOnlyFiles().length).toBeGreaterThan(0);
  for (const file of fullOnlyFiles()) expect(files.has(file), file).toBe(false);
});

test("extracts only TypeScript blocks from Markdown", () => {
  expect(typescriptBlocks("a\n```ts\nconst x = 1;\n```\n```sh\nls\n```\n```ts\ny();\n```\n")).toEqual([
    "const x = 1;\n",
    "y();\n",
  ]);
});

test("fails a command by its exit code, its absence, or a timeout", async () => {
  expect((await commandCheck("true", ["node", "-e", ""])).status).toBe("passed");
  expect(await commandCheck("false", ["node", "-e", "console.log('why'); process.exit(3)"])).toMatchObject({
    status: "failed",
    detail: "exit code 3\nwhy",
  });
  expect((await commandCheck("absent", ["no-such-command-here"])).status).toBe("failed");
  expect((await run(["node", "-e", "setTimeout(() => {}, 60000)"], { seconds: 0.5 })).code).toBe(124);
});
