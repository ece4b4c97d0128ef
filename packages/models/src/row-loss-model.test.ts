import {
  evaluate,
  full,
  multiply,
  NdArray,
  referenceBackend,
  square,
  subtract,
  sum,
  type Tensor,
} from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { inputsOf, rowLossModel } from "./row-loss-model.ts";

interface Batch {
  readonly seen: Tensor;
  readonly wanted: readonly [Tensor];
  readonly mask?: Tensor;
}

/** Model that doubles its input, with the squared error as its loss. */
const twice = rowLossModel({
  init: () => ({ params: full([], 2), state: {} }),
  apply: (factor, state, { seen }: Omit<Batch, "mask">) => [multiply(seen, factor), state],
  losses: (outputs, { wanted: [wanted] }: Batch) => square(subtract(outputs, wanted)),
  rows: (outputs) => ({ total: outputs }),
});

const judge = evaluate((seen: Tensor, wanted: Tensor, mask: Tensor) => {
  const { params, state } = twice.init(mask);
  const batch = { seen, wanted: [wanted] as const, mask };
  return [twice.loss(params, state, batch, { train: false })[0], twice.evaluate(params, state, batch)] as const;
}, referenceBackend());

describe("rowLossModel", () => {
  test("is evaluated on unmasked rows, and its loss is their mean, whatever the values of masked rows", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ seen: fc.integer({ min: -9, max: 9 }), wanted: fc.integer({ min: -9, max: 9 }) }), {
          minLength: 1,
          maxLength: 5,
        }),
        fc.array(fc.constantFrom(NaN, Infinity, 7), { maxLength: 3 }),
        async (rows, padding) => {
          const size = rows.length + padding.length;
          const [loss, { lossSum, count, total }] = await judge(
            NdArray.from([...rows.map(({ seen }) => seen), ...padding], [size]),
            NdArray.from([...rows.map(({ wanted }) => wanted), ...padding], [size]),
            NdArray.from([...rows.map(() => 1), ...padding.map(() => 0)], [size], "bool"),
          );
          const squares = rows.map(({ seen, wanted }) => (2 * seen - wanted) ** 2);
          const added = squares.reduce((a, b) => a + b, 0);
          expect([lossSum.item(), count.item()]).toEqual([added, rows.length]);
          expect(loss.item()).toBeCloseTo(added / rows.length, 4);
          expect(total!.item()).toBe(rows.reduce((all, { seen }) => all + 2 * seen, 0));
        },
      ),
      { numRuns: 20 },
    );
  });

  test("without a mask, all rows are included", async () => {
    const sums = await evaluate(
      (seen: Tensor) => twice.evaluate(full([], 2), {}, { seen, wanted: [seen] }),
      referenceBackend(),
    )(NdArray.from([1, 2, 3]));
    expect([sums.lossSum.item(), sums.count.item()]).toEqual([14, 3]);
  });
});

test("applies the model to the field inputs, or to the whole batch except its mask", async () => {
  const read = evaluate(
    (a: Tensor, b: Tensor) => [sum(inputsOf({ inputs: a, labels: b, mask: b })), inputsOf({ a, mask: b })] as const,
    referenceBackend(),
  );
  const [total, rest] = await read(NdArray.from([1, 2]), NdArray.from([5, 6]));
  expect(total.item()).toBe(3);
  expect(Object.keys(rest)).toEqual(["a"]);
});
