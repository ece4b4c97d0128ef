import { add, multiply, sum, type Tensor, trace, valueAndGrad } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bucketPerTensor, bucketsOfSize, checkBucketPlan, readyOrder } from "./bucket-plan.ts";

const params = (...lengths: number[]): unknown => ({
  layers: lengths.map((length) => ({ dtype: "f32", shape: [length] })),
});

describe("bucket plans", () => {
  it("bucketPerTensor orders tensors from last to first", () => {
    expect(bucketPerTensor(params(1, 2, 3))).toEqual([["layers.2"], ["layers.1"], ["layers.0"]]);
  });

  it("bucketsOfSize fills buckets up to the size, and gives a large tensor its own bucket", () => {
    expect(bucketsOfSize(params(2, 2, 100, 3, 1), 16)).toEqual([
      ["layers.4", "layers.3"],
      ["layers.2"],
      ["layers.1", "layers.0"],
    ]);
  });

  it("bucketsOfSize without a bound returns a single bucket", () => {
    expect(bucketsOfSize(params(2, 3), Infinity)).toEqual([["layers.1", "layers.0"]]);
    expect(bucketsOfSize({}, 16)).toEqual([]);
  });

  it("name every tensor once, in order, and never fill a bucket of several tensors beyond the size", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(20), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 1, max: 120 }),
        (lengths, bytes) => {
          const plan = bucketsOfSize(params(...lengths), bytes);
          expect(plan.flat()).toEqual(lengths.map((_, i) => `layers.${i}`).reverse());
          for (const bucket of plan) {
            const size = bucket.reduce((total, path) => total + 4 * lengths[Number(path.split(".")[1])]!, 0);
            expect(bucket.length === 1 || size <= bytes).toBe(true);
          }
          // Greedy: the first tensor of a bucket did not fit into the previous bucket.
          plan.slice(1).forEach((bucket, i) => {
            const size = [...plan[i]!, bucket[0]!].reduce(
              (total, path) => total + 4 * lengths[Number(path.split(".")[1])]!,
              0,
            );
            expect(size).toBeGreaterThan(bytes);
          });
        },
      ),
    );
  });

  it("readyOrder follows the backward pass, not the names", () => {
    const shapes = { a: { dtype: "f32" as const, shape: [3] }, b: { dtype: "f32" as const, shape: [3] } };
    let order: string[] = [];
    trace(
      (p: { a: Tensor; b: Tensor }) => {
        // b is used first, so its gradient is ready last.
        const [, gradients] = valueAndGrad((own: { a: Tensor; b: Tensor }) =>
          sum(multiply(add(multiply(own.b, own.b), 1), multiply(own.a, own.a))),
        )(p);
        order = readyOrder(gradients);
        return gradients;
      },
      [shapes] as never,
    );
    expect(order).toEqual(["a", "b"]);
  });

  it("reject plans that do not match, and name the tensor", () => {
    expect(() => checkBucketPlan([["layers.0"]], params(1, 1))).toThrow(/leaves out \[layers\.1\]/);
    expect(() => checkBucketPlan([["layers.0", "layers.0"], ["layers.1"]], params(1, 1))).toThrow(/"layers\.0" twice/);
    expect(() => checkBucketPlan([["layers.0"], ["w"], ["layers.1"]], params(1, 1))).toThrow(/names "w"/);
    expect(() => checkBucketPlan([["layers.0", "layers.1"], []], params(1, 1))).toThrow(/bucket 1 of 2 is empty/);
    expect(() => bucketsOfSize(params(1), 0)).toThrow(/positive size/);
  });
});
