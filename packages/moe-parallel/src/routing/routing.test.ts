import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkRouting, expertCounts, joinRoutings, numTokens, type Routing } from "./routing.ts";

const routing = (numExperts: number, numChoices: number, ...choices: number[]): Routing => ({
  numExperts,
  numChoices,
  choices: Int32Array.from(choices),
});

describe("checkRouting", () => {
  test("accepts any number of dropped choices, and no tokens", () => {
    checkRouting(routing(3, 2, 0, 2, -1, -1, 1, -1));
    checkRouting(routing(3, 2));
  });

  test.each([
    [routing(3, 2, 0, 1, 2), /3 choices are not divisible by 2 choices per token/],
    [routing(3, 2, 0, 1, 2, 3), /token 1 chose expert 3 of 3/],
    [routing(3, 2, 0, 1, -2, 0), /token 1 chose expert -2 of 3/],
    [routing(3, 2, 0, 1, 2, 2), /token 1 chose expert 2 twice/],
    [routing(0, 1), /0 experts with 1 choices/],
    [routing(1, 0), /1 experts with 0 choices/],
  ])("rejects an invalid routing", (wrong, message) => {
    expect(() => checkRouting(wrong)).toThrow(message);
  });
});

test("expertCounts counts every choice that was not dropped", () => {
  expect(expertCounts(routing(4, 2, 0, 2, -1, 2, 3, 2))).toEqual([1, 0, 3, 1]);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -1, max: 3 })), (choices) => {
      const total = expertCounts(routing(4, 1, ...choices)).reduce((a, b) => a + b, 0);
      expect(total).toBe(choices.filter((choice) => choice !== -1).length);
    }),
  );
});

test("joinRoutings concatenates the tokens of ranks, and rejects routings of different layers", () => {
  const joined = joinRoutings([routing(4, 2, 0, 1), routing(4, 2), routing(4, 2, 3, 2, 1, -1)]);
  expect(joined).toEqual(routing(4, 2, 0, 1, 3, 2, 1, -1));
  expect(numTokens(joined)).toBe(3);
  expect(() => joinRoutings([routing(4, 2), routing(4, 1)])).toThrow(/rank 1 has 4 experts and 1 choices/);
  expect(() => joinRoutings([])).toThrow(/no routings were given/);
});
