import { arrayRecords, evaluationIndices } from "@skein/data";
import { readEvaluationBatches } from "@skein/data/node";
import { mlp, type Model } from "@skein/models";
import { flatFigures, formatFigures } from "@skein/run-files/node";
import { cast, multiply, NdArray, referenceBackend, sum, type Tensor } from "@skein/tensor-core";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { evaluationBatch } from "../evaluation/evaluation-batch.ts";
import { evaluationOrder, makeEvaluation } from "./evaluate.ts";
import { type EvaluationSums, totalSums } from "../evaluation/evaluation-sums.ts";
import { evaluationFigures } from "../evaluation/compute-figures.ts";

/** A model evaluated by custom sums over the unmasked rows. */
const model = {
  ...mlp({ sizes: [1, 1, 2] }),
  evaluate: (_: unknown, __: unknown, { inputs, labels, mask }: Record<"inputs" | "labels" | "mask", Tensor>) => {
    const rows = cast(mask, "f32");
    const column = multiply(sum(inputs, { dims: [1] }), rows);
    return {
      lossSum: sum(column),
      count: sum(rows),
      squares: sum(multiply(column, column)),
      labelled: sum(multiply(cast(labels, "f32"), rows)),
    };
  },
  metrics: { meanSquare: { sum: "squares", per: "count" }, squaresPerLabel: { sum: "squares", per: "labelled" } },
} as unknown as Model;

test("custom sums cover all samples, however these are split into batches and ranks, without padding", async () => {
  const backend = referenceBackend();
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 5 }),
      async (values, ranks, each) => {
        const labels = values.map((value) => Number(value > 0));
        const records = arrayRecords({
          inputs: NdArray.from(values, [values.length, 1]),
          labels: NdArray.from(labels, [values.length], "i32"),
        });
        const evaluate = makeEvaluation(model, backend, {});
        const parts: EvaluationSums[] = [];
        for (let rank = 0; rank < ranks; rank++)
          parts.push(
            await evaluate(
              { params: {}, model: {} } as never,
              readEvaluationBatches(records, { batchSize: ranks * each, rank, worldSize: ranks }),
            ),
          );
        const total = (of: readonly number[]): number => of.reduce((all, one) => all + one, 0);
        expect(totalSums(parts)).toEqual({
          lossSum: total(values),
          count: values.length,
          squares: total(values.map((value) => value * value)),
          labelled: total(labels),
        });
      },
    ),
    { numRuns: examples(8, 60) },
  );
});

test("an evaluation batch is rounded up to whole parts for any number of ranks, and each sample counts once", () => {
  const sizes = fc.record({
    batch: fc.integer({ min: 1, max: 600 }),
    count: fc.integer({ min: 1, max: 700 }),
    data: fc.integer({ min: 1, max: 9 }),
    tensor: fc.integer({ min: 1, max: 3 }),
  });
  fc.assert(
    fc.property(sizes, ({ batch, count, data, tensor }) => {
      const job = { ranks: data * tensor, mesh: { expert: 1, tensor }, evaluation: { batch } } as never;
      const size = evaluationBatch(job, count);
      expect(size % data).toBe(0);
      expect(size - Math.min(batch, count)).toBeGreaterThanOrEqual(0);
      expect(size - Math.min(batch, count)).toBeLessThan(data);
      const seen = Array.from({ length: data }, (_, rank) => {
        const order = evaluationOrder(job, { ...model, sharding: undefined } as never, count, {
          rank,
          worldSize: data,
        });
        return [...evaluationIndices(count, order)].flatMap(({ indices, mask }) =>
          [...indices].filter((_sample, i) => mask.toNumbers()[i] === 1),
        );
      });
      expect(seen.flat().toSorted((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, i) => i));
    }),
    { numRuns: examples(40, 400), seed: 45 },
  );
});

test("metrics are ratios of sums; those of a model stand beside the built-in ones, in lines for people and in JSON", () => {
  const sums = { lossSum: 6, count: 4, correct: 3, squares: 10 };
  const own = evaluationFigures("classes", sums, { "mean-square": { sum: "squares", per: "count" } });
  expect(flatFigures(own)).toEqual({ loss: 1.5, accuracy: 0.75, "mean-square": 2.5 });
  expect(formatFigures(own, "validation")).toBe("validation loss 1.5000, 75.00 % right, mean-square 2.500");
  expect(flatFigures(evaluationFigures("classes", sums))).toEqual({ loss: 1.5, accuracy: 0.75 });
  expect(flatFigures(evaluationFigures("values", { lossSum: 6, count: 4 }))).toEqual({ loss: 1.5 });
  expect(formatFigures(evaluationFigures("bytes", sums), "test")).toBe(
    "test loss 1.5000, 2.164 bits per byte, perplexity 4.48",
  );
});
