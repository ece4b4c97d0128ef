import fc from "fast-check";
import { expect, test } from "vitest";
import { timeUnits } from "../quantities.ts";
import { linearTicks, logTicks, tickTexts } from "./ticks.ts";

test("ticks are round, inside the range, and about as many as requested", () => {
  expect(linearTicks(0, 10, 5)).toEqual([0, 2, 4, 6, 8, 10]);
  expect(linearTicks(0.13, 0.72, 6)).toEqual([0.2, 0.3, 0.4, 0.5, 0.6, 0.7]);
  expect(linearTicks(-0.3, 0.3, 3)).toEqual([-0.2, 0, 0.2]);
  const range = fc.tuple(
    fc.double({ min: -1e9, max: 1e9, noNaN: true }),
    fc.double({ min: 1e-3, max: 1e9, noNaN: true }),
    fc.integer({ min: 2, max: 12 }),
  );
  fc.assert(
    fc.property(range, ([from, length, count]) => {
      const ticks = linearTicks(from, from + length, count);
      expect(ticks.length).toBeLessThanOrEqual(count + 1);
      expect(ticks.length).toBeGreaterThanOrEqual(Math.floor(count / 2.5));
      for (const tick of ticks) expect(tick).toBeGreaterThanOrEqual(from - 1e-6 * Math.max(1, length, Math.abs(from)));
    }),
  );
});

test("an empty, infinite or invalid range has no ticks", () => {
  for (const [from, to] of [
    [1, 1],
    [2, 1],
    [0, Infinity],
    [Number.NaN, 1],
  ] as const)
    expect([linearTicks(from, to, 5), logTicks(from, to, 5).length <= 1]).toEqual([[], true]);
  expect(linearTicks(0, 1, 0)).toEqual([]);
});

test("powers of ten are thinned if there are many", () => {
  expect(logTicks(0.5, 2000, 7)).toEqual([1, 10, 100, 1000]);
  expect(logTicks(1, 1e9, 5)).toEqual([1, 100, 1e4, 1e6, 1e8]);
  expect(logTicks(-1, 10, 5)).toEqual([]);
});

test("ticks are formatted with one unit and as many decimals as needed", () => {
  expect(tickTexts([0, 0.0005, 0.001], timeUnits)).toEqual(["0.0 ms", "0.5 ms", "1.0 ms"]);
  expect(tickTexts([0.0012345, 0.0012346], timeUnits)).toEqual(["1.2345 ms", "1.2346 ms"]);
  expect(tickTexts([10_000], timeUnits)).toEqual(["10000 s"]);
  expect(tickTexts([], timeUnits)).toEqual([]);
});
