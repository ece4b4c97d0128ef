import { expect, test } from "vitest";
import { skipCounts } from "./skip-counts.ts";

test("counts skips by file, with a reason if there is one", () => {
  expect(
    skipCounts([
      { name: "a.test.ts: one", status: "skipped" },
      { name: "a.test.ts: two (skipped: no compiler)", status: "skipped" },
      { name: "b.test.ts: three", status: "skipped" },
      { name: "b.test.ts: four", status: "passed" },
      { name: "c.test.ts: five", status: "failed", detail: "wrong" },
    ]),
  ).toEqual(["skipped: 2 in a.test.ts (no compiler)", "skipped: 1 in b.test.ts"]);
});
