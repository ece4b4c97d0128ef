import { expect, test } from "vitest";
import { withinTime } from "./within-time.ts";

test("gives what work gives, and throws what it throws", () => {
  const array = [1];
  expect(withinTime(60_000, () => array)?.result).toBe(array);
  expect(() =>
    withinTime(60_000, () => {
      throw new TypeError("own");
    }),
  ).toThrow(new TypeError("own"));
});

test("ends work that never ends, within a regular expression, too, and works afterwards", () => {
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
