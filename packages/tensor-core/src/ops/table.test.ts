import { expect, test } from "vitest";
import { operators } from "./table.ts";

test("every operator is in the row of its name", () => {
  expect(Object.values(operators).map(({ name }) => name)).toEqual(Object.keys(operators));
});
