import { expect, it } from "vitest";
import { checkLaws } from "./laws/check.ts";
import { basicRows } from "./rows/basics.ts";
import { lowRankRows } from "./rows/low-rank.ts";
import { wrapperRows } from "./rows/wrappers.ts";
import { rows } from "./table.ts";

// One file per family of rows, so that families run in parallel.
checkLaws([...basicRows, ...lowRankRows, ...wrapperRows]);

it("no two rows have the same name", () => {
  expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length);
});
