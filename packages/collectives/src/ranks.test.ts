import fc from "fast-check";
import { expect, test } from "vitest";
import { formatRanks } from "./ranks.ts";

test("formatted ranks can be parsed back exactly", () => {
  expect(formatRanks([3])).toBe("rank 3");
  expect(formatRanks([5, 3])).toBe("ranks 3, 5");
  expect(formatRanks([0, 1, 4, 5, 6, 7, 9])).toBe("ranks 0, 1, 4–7, 9");
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(40), { minLength: 1 }), (ranks) => {
      const named = formatRanks(ranks)
        .replace(/^ranks? /, "")
        .split(", ")
        .flatMap((part) => {
          const [first, last = first] = part.split("–").map(Number);
          return Array.from({ length: last! - first! + 1 }, (_, i) => first! + i);
        });
      expect(named).toEqual(ranks.toSorted((a, b) => a - b));
    }),
  );
});
