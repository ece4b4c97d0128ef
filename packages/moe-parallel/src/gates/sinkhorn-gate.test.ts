import { evaluate, exp, NdArray, referenceBackend, sum, type Tensor } from "@skein/tensor-core";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { balanceLogits } from "./sinkhorn-gate.ts";

const [numTokens, numExperts] = [6, 3];
const logits = fc
  .array(fc.integer({ min: -16, max: 16 }), { minLength: numTokens * numExperts, maxLength: numTokens * numExperts })
  .map((values) =>
    NdArray.from(
      values.map((value) => value / 8),
      [numTokens, numExperts],
      "f32",
    ),
  );

test("each token sums to 1, each expert to the same number of tokens", async () => {
  const sums = (x_TE: Tensor): [Tensor, Tensor] => {
    const balanced_TE = exp(balanceLogits(x_TE, 40));
    return [sum(balanced_TE, { dims: 1 }), sum(balanced_TE, { dims: 0 })];
  };
  await fc.assert(
    fc.asyncProperty(logits, async (x) => {
      const [rows, columns] = await evaluate(sums, referenceBackend())(x);
      for (const row of rows.toNumbers()) expect(row).toBeCloseTo(1, 5);
      for (const column of columns.toNumbers()) expect(column).toBeCloseTo(numTokens / numExperts, 3);
    }),
    { numRuns: examples(20, 200) },
  );
});

test("large logits do not overflow, and each token keeps its preferred expert if loads are even", async () => {
  const x = NdArray.from([500, 0, 0, 0, 500, 0, 0, 0, 500], [3, 3], "f32");
  const balanced = await evaluate((x_TE: Tensor) => exp(balanceLogits(x_TE, 16)), referenceBackend())(x);
  balanced.toNumbers().forEach((value, i) => expect(value).toBeCloseTo(i % 4 === 0 ? 1 : 0, 5));
});
