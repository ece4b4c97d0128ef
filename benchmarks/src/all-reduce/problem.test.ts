import { expect, test } from "vitest";
import { formatSizes, parseSizes, sizes, warmUpsOf } from "./problem.ts";

test("sizes come back from the command line as they went", () => {
  expect(parseSizes(formatSizes(sizes))).toEqual(sizes);
});

test.each(["4096", "4096:", "-4:5", "0:5", "6:5", "4096:0", "4096:5:6", "4 KiB:5"])("%j is no size", (word) => {
  expect(() => parseSizes([word])).toThrow(/is no size/);
});

test("no size at all is refused", () => {
  expect(() => parseSizes([])).toThrow("no sizes are given");
});

test("a fifth as many warm up as are timed, and ten at least", () => {
  expect([5, 50, 51, 1000].map((samples) => warmUpsOf({ bytes: 4, samples }))).toEqual([10, 10, 10, 200]);
});
