import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "./repository.ts";
import { missingOperators, operatorTable, printedTable, supportedDtypes, tablePage } from "./operator-table.ts";

test("the operator table is up to date; update it with: node tooling/operator-table.ts", () => {
  expect(printedTable(readFileSync(join(repository, tablePage), "utf8"))).toBe(operatorTable());
});

test("the table is complete: every operator has a row, and every dtype of one backend runs on all", () => {
  expect(missingOperators()).toEqual([]);
  const holes = [...supportedDtypes()].filter(
    ([, cells]) =>
      new Set(Object.values(cells).map((list) => list.join())).size > 1 ||
      Object.values(cells).some((list) => list.length === 0),
  );
  expect(holes).toEqual([]);
});
