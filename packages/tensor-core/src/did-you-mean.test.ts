import { expect, test } from "vitest";
import { didYouMean, editDistance } from "./did-you-mean.ts";

test("didYouMean offers near words only", () => {
  expect(editDistance("adan", "adam")).toBe(1);
  expect(editDistance("rnaks", "ranks")).toBe(1);
  expect(editDistance("", "abc")).toBe(3);
  expect(didYouMean("zebra", ["ranks", "batch"])).toBeUndefined();
});
