import { expect, test } from "vitest";
import { kernels } from "./kernel-table.ts";

test("every kernel is in the row of its operator", () => {
  expect(Object.values(kernels).map(({ op }) => op)).toEqual(Object.keys(kernels));
});
