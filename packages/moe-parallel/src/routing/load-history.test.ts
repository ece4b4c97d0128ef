import { evaluate, NdArray, referenceBackend, type Tensor } from "@skein/tensor-core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type CountHistory, decayedCounts, meanCounts, recordCounts } from "./count-history.ts";
import { initLoadHistory, recordLoad } from "./load-history.ts";

test("equals decayed counts, from the first step on", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(500), fc.nat(3), fc.constantFrom(0, 64)), { maxLength: 8 }),
      fc.constantFrom(0, 0.5, 0.95, 1),
      async (steps, decay) => {
        const remembered = (...loads: Tensor[]) =>
          loads.reduce((memory, load_E) => recordLoad(memory, load_E, decay), initLoadHistory(3));
        const { meanLoad_E, loadWeight } = await evaluate(
          remembered,
          referenceBackend(),
        )(...steps.map((loads) => NdArray.from(loads, [3], "f32")));
        const expected = steps.reduce<CountHistory>(
          (memory, loads) => recordCounts(memory, loads),
          decayedCounts(3, decay),
        );
        if (expected.kind !== "decayed") throw new Error("of another kind");
        expect(loadWeight.item()).toBeCloseTo(expected.weight, 5);
        meanCounts(expected).forEach((mean, expert) =>
          expect(Math.abs(meanLoad_E.toNumbers()[expert]! - mean)).toBeLessThanOrEqual(1e-5 * (1 + mean)),
        );
      },
    ),
    { numRuns: 40 },
  );
});
