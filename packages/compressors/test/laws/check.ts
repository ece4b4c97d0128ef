import { describe, it } from "vitest";
import type { Row } from "../rows/row.ts";
import { laws } from "./table.ts";

/** Defines a test for every law that applies to a row. */
export const checkLaws = (rows: readonly Row[]): void => {
  describe.each(rows)("$name", (row) => {
    it.each(laws.filter(({ appliesTo }) => appliesTo(row)))("$name", ({ check }) => check(row));
  });
};
