import { expect, test } from "vitest";
import { logAxis } from "./log-axis.ts";

test("equal ratios are equally far apart, on an axis that points up too", () => {
  const right = logAxis({ from: 1, to: 1000, pixels: [100, 400], base: 10 });
  expect([1, 10, 100, 1000].map((value) => right.at(value))).toEqual(
    [100, 200, 300, 400].map((pixel) => expect.closeTo(pixel, 9)),
  );
  const up = logAxis({ from: 2, to: 32, pixels: [300, 100], base: 2 });
  expect([2, 8, 32].map((value) => up.at(value))).toEqual([300, 200, 100].map((pixel) => expect.closeTo(pixel, 9)));
});

test("ticks are the powers within the axis, its ends among them although powers round", () => {
  expect(logAxis({ from: 3, to: 40_000, pixels: [0, 1], base: 10 }).ticks).toEqual([10, 100, 1000, 10_000]);
  expect(logAxis({ from: 1000, to: 1_000_000, pixels: [0, 1], base: 10 }).ticks).toEqual([1e3, 1e4, 1e5, 1e6]);
  expect(logAxis({ from: 2 ** 12, to: 2 ** 26, pixels: [0, 1], base: 4 }).ticks).toEqual(
    [12, 14, 16, 18, 20, 22, 24, 26].map((k) => 2 ** k),
  );
  expect(logAxis({ from: 0.05, to: 2, pixels: [0, 1], base: 10 }).ticks).toEqual([expect.closeTo(0.1, 12), 1]);
});

test("minor ticks are multiples within the axis, those below its first tick too", () => {
  expect(logAxis({ from: 30, to: 250, pixels: [0, 1], base: 10, minor: [2, 5] }).minorTicks).toEqual([50, 200]);
});

test("an axis has two ends above zero", () => {
  expect(() => logAxis({ from: 0, to: 10, pixels: [0, 1], base: 10 })).toThrow("from 0 to 10");
  expect(() => logAxis({ from: 5, to: 5, pixels: [0, 1], base: 10 })).toThrow("from 5 to 5");
});
