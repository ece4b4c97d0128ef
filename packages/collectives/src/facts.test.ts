import { expect, test } from "vitest";
import { type Facts, requireSameFacts } from "./facts.ts";

const check =
  (rank: number, ...facts: Facts[]): (() => void) =>
  () =>
    requireSameFacts(facts, rank);

test("accepts equal facts in any order", () => {
  expect(check(0, { a: "1", b: "2" }, { b: "2", a: "1" })).not.toThrow();
  expect(check(0, {})).not.toThrow();
});

test.each([0, 1, 2, 3])(
  "on rank %i, names the fact that differs, both values, and all ranks with the other value",
  (rank) => {
    const [here, there] = [
      { build: "relaxed", order: "rank" },
      { build: "relaxed", order: "any" },
    ];
    expect(check(rank, here, there, here, there)).toThrow(
      /^order: ranks 1, 3 have any, rank 0 has rank; all ranks must have the same value, .*: give every process/,
    );
  },
);

test("rejects a fact that one rank lacks", () => {
  expect(check(1, { build: "simd" }, {})).toThrow(/^build: rank 1 has none, rank 0 has simd;/);
  expect(check(1, {}, { build: "simd" })).toThrow(/^build: rank 1 has simd, rank 0 has none;/);
});
