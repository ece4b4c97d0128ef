import { checkRouting, numTokens, type Routing } from "@skein/moe-parallel/routing";
import { randomKey } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { uniformRouting } from "./uniform-routing.ts";

const choicesByToken = ({ choices, numChoices }: Routing): readonly number[][] =>
  Array.from({ length: choices.length / numChoices }, (_, token) => [
    ...choices.subarray(token * numChoices, (token + 1) * numChoices),
  ]);

test.each([1, 2, 5, 9])("gives each token %i different experts, and the same ones for the same key", (numChoices) => {
  const of = { numExperts: 9, numChoices };
  for (const length of [0, 1, 20]) {
    const routing = uniformRouting(length, of, randomKey(length).data);
    checkRouting(routing);
    expect(routing.choices).not.toContain(-1);
    expect(numTokens(routing)).toBe(length);
    expect(uniformRouting(length, of, randomKey(length).data)).toEqual(routing);
  }
});

test("draws all sets of experts with equal probability", () => {
  const routing = uniformRouting(60_000, { numExperts: 6, numChoices: 3 }, randomKey(1).data);
  const sets = choicesByToken(routing).map((experts) => experts.toSorted((a, b) => a - b).join(" "));
  const counts = [...Map.groupBy(sets, (set) => set).values()].map(({ length }) => length);
  // 20 sets of experts, with an expected count of 3000 each and a standard deviation of 53.
  expect(counts).toHaveLength(20);
  for (const count of counts) expect(Math.abs(count - 3000)).toBeLessThan(4 * 53);
});
