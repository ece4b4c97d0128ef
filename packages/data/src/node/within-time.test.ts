import { expect, test } from "vitest";
import { withinTime } from "./within-time.ts";

test("returns the result of the work, and throws its errors", () => {
  const array = [1];
  expect(withinTime(60_000, () => array)?.result).toBe(array);
  expect(() =>
    withinTime(60_000, () => {
      throw new TypeError("own");
    }),
  ).toThrow(new TypeError("own"));
});

test("stops endless work, also inside a regular expression, and can be used again", () => {
  expect(withinTime(20, () => /(a+)+$/.test(`${"a".repeat(60)}b`))).toBeUndefined();
  let turns = 0;
  expect(
    withinTime(20, () => {
      turns++;
      for (;;);
    }),
  ).toBeUndefined();
  expect(turns).toBe(2);
  expect(withinTime(60_000, () => 7)?.result).toBe(7);
});
