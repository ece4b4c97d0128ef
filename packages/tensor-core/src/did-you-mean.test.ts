import { expect, test } from "vitest";
import { didYouMean, editDistance } from "./did-you-mean.ts";

test("didYouMean suggests only similar words", () => {
  expect(editDistance("adan", "adam")).toBe(1);
  expect(editDistance("rnaks", "ranks")).toBe(1);
  expect(editDistance("", "abc")).toBe(3);
  expect(didYouMean("zebra", ["ranks", "batch"])).toBeUndefined();
});
