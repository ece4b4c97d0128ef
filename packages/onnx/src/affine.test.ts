import fc from "fast-check";
import { expect, test } from "vitest";
import { affineOf, dimName, probes } from "./affine.ts";

test("an affine function is found from two batch sizes and confirmed by the third", () => {
  const small = fc.integer({ min: 1, max: 1000 });
  fc.assert(
    fc.property(small, fc.integer({ min: -1, max: 1000 }), (times, plus) => {
      expect(affineOf(probes.map((batch) => times * batch + plus))).toEqual({ times, plus });
    }),
  );
  fc.assert(
    fc.property(small, small, fc.integer({ min: 1, max: 50 }), (times, plus, off) => {
      const [first, second, third] = probes.map((batch) => times * batch + plus) as [number, number, number];
      expect(affineOf([first, second, third + off])).toBeUndefined();
    }),
  );
  expect(affineOf([7, 7, 7])).toBe(7);
  expect(affineOf(probes.map((batch) => 1 / batch))).toBeUndefined();
  expect(affineOf(probes.map((batch) => batch * batch))).toBeUndefined();
  expect(affineOf([Number.NaN, Number.NaN, Number.NaN])).toBeNaN();
});

test("equal sizes have equal names", () => {
  expect(
    [
      { times: 1, plus: 0 },
      { times: 4, plus: 0 },
      { times: 2, plus: -1 },
    ].map(dimName),
  ).toEqual(["batch", "4 * batch", "2 * batch - 1"]);
});
