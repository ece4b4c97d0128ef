import { join } from "node:path";
import { expect, test } from "vitest";
import { commandCheck, repository, run } from "../check.ts";
import { typescriptBlocks } from "./examples.ts";
import { reportChecks } from "./vitest.ts";

test("a report becomes one check per test, and one failure for a file that did not load", () => {
  const name = (file: string): string => join(repository, file);
  const checks = reportChecks({
    testResults: [
      {
        name: name("a.test.ts"),
        status: "failed",
        message: "",
        assertionResults: [
          { fullName: "one", status: "passed", failureMessages: [] },
          { fullName: "two", status: "failed", failureMessages: ["1 is not 2"] },
          { fullName: "three", status: "pending", failureMessages: null },
        ],
      },
      { name: name("b.test.ts"), status: "failed", message: "no such module", assertionResults: [] },
    ],
  });
  expect(checks).toEqual([
    { name: "a.test.ts: one", status: "passed" },
    { name: "a.test.ts: two", status: "failed", detail: "1 is not 2" },
    { name: "a.test.ts: three", status: "skipped" },
    { name: "b.test.ts", status: "failed", detail: "no such module" },
  ]);
});

test("TypeScript blocks are taken from Markdown, others are not", () => {
  expect(typescriptBlocks("a\n```ts\nconst x = 1;\n```\n```sh\nls\n```\n```ts\ny();\n```\n")).toEqual(["const x = 1;\n", "y();\n"]);
});

test("a command fails by its exit code, by its absence, and by running too long", async () => {
  expect((await commandCheck("true", ["node", "-e", ""])).status).toBe("passed");
  expect(await commandCheck("false", ["node", "-e", "console.log('why'); process.exit(3)"])).toMatchObject({
    status: "failed",
    detail: "exit code 3\nwhy",
  });
  expect((await commandCheck("absent", ["no-such-command-here"])).status).toBe("failed");
  expect((await run(["node", "-e", "setTimeout(() => {}, 60000)"], { seconds: 0.5 })).code).toBe(124);
});
