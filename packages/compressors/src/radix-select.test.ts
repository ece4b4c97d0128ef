import { NdArray, type Tensor } from "@skein/tensor-core";
import fc from "fast-check";
import { expect, it } from "vitest";
import { runWorld } from "../test/world.ts";
import { selectGreatest } from "./radix-select.ts";

it("finds the k-th greatest key of all ranks, and the number of equal keys among the k greatest", () => {
  // Few distinct keys, so that many are equal, and keys that differ in only one of the four digits.
  const key = fc.oneof(
    fc.constantFrom(0, 1, 255, 256, 0x00010000, 0x01000000, 0x7f800000, 0x7fc00000, 2 ** 31 - 1),
    fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  );
  const world = fc
    .tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 12 }))
    .chain(([numRanks, m]) =>
      fc.tuple(
        fc.array(fc.array(key, { minLength: m, maxLength: m }), { minLength: numRanks, maxLength: numRanks }),
        fc.integer({ min: 1, max: numRanks * m }),
      ),
    );
  fc.assert(
    fc.property(world, ([keys, k]) => {
      const results = runWorld(
        (own: Tensor) => {
          const { threshold, numTies } = selectGreatest(own, k, "data");
          return { threshold, numTies };
        },
        keys.map((own): [NdArray] => [NdArray.from(own, [own.length], "i32")]),
      );
      const sorted = keys.flat().sort((a, b) => b - a);
      const threshold = sorted[k - 1]!;
      const numTies = k - sorted.filter((one) => one > threshold).length;
      for (const found of results) expect([found.threshold.item(), found.numTies.item()]).toEqual([threshold, numTies]);
    }),
  );
});
