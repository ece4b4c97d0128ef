import { add, cast, multiply, NdArray, slice, type Tensor } from "@skein/tensor-core";
import { describe, expect, it } from "vitest";
import { runWorld } from "../test/world.ts";
import type { Aggregator } from "./aggregator.ts";
import { bucketOf } from "./bucket.ts";
import { hasAtLeast, isMatrix, partitionAggregator, perPath } from "./partition.ts";
import { topKCompressor } from "./top-k.ts";

const bucket = bucketOf([
  { path: "a", shape: [2, 2] },
  { path: "b", shape: [3] },
  { path: "c", shape: [2, 1] },
  { path: "d", shape: [0, 4] },
  { path: "e", shape: [] },
]);
const gradient = [1, -2, 3, 4, 50, 60, 70, 8, -9, 0.5];

const once = (aggregator: Aggregator, own: readonly number[] = gradient): number[] => {
  const [mean] = runWorld(
    (g: Tensor, key: Tensor) => aggregator.aggregate(g, aggregator.init(bucket), bucket, { axis: "data", key }).mean,
    [[NdArray.from(own), NdArray.from([1, 2], [2], "u32")]],
  );
  return mean!.toNumbers();
};

/** Returns an aggregator that adds to each element a number that identifies the aggregator. */
const marking = (mark: (context: { readonly key?: Tensor }) => Tensor | number): Aggregator<[]> => ({
  biased: false,
  scope: "tensor",
  init: () => [],
  aggregate: (g, state, _, context) => {
    const marked = add(g, mark(context));
    return { mean: marked, sent: marked, state };
  },
  bytesSent: () => 1,
});

describe("partitionAggregator", () => {
  it("uses the first matching rule, and restores the order of tensors", () => {
    const [hundred, thousand, million] = [100, 1000, 1e6].map((mark) => marking(() => mark)) as [
      Aggregator,
      Aggregator,
      Aggregator,
    ];
    const rules = [
      { when: isMatrix, aggregator: hundred },
      { when: hasAtLeast(3), aggregator: thousand },
      { when: isMatrix, aggregator: million },
    ];
    expect(once(partitionAggregator(rules))).toEqual([101, 98, 103, 104, 1050, 1060, 1070, 108, 91, 0.5]);
    expect(once(partitionAggregator([], thousand))).toEqual(gradient.map((v) => v + 1000));
    expect(once(partitionAggregator([{ when: ({ path }) => path === "e", aggregator: hundred }]))).toEqual([
      ...gradient.slice(0, -1),
      100.5,
    ]);
  });

  it("selects among all tensors of one rule, independently of other rules", () => {
    const top = { when: isMatrix, aggregator: topKCompressor({ k: 2 }) };
    expect(once(partitionAggregator([top]))).toEqual([0, 0, 0, 0, 50, 60, 70, 8, -9, 0.5]);
    expect(once(partitionAggregator([top], topKCompressor({ k: 1 })))).toEqual([0, 0, 0, 0, 0, 0, 70, 8, -9, 0]);
  });

  it("chooses aggregators by path", () => {
    const layered = perPath({ a: topKCompressor({ k: 1 }), c: topKCompressor({ k: 1 }) });
    expect(once(layered)).toEqual([0, 0, 0, 4, 50, 60, 70, 0, -9, 0.5]);
    expect(layered.bytesSent(bucket, 3)).toBeCloseTo(8 * 2 + 8 * 2 + (2 * 2 * 4 * 4) / 3, 9);
    const shared = topKCompressor({ k: 1 });
    expect(once(perPath({ a: shared, c: shared }))).toEqual([0, 0, 0, 0, 50, 60, 70, 0, -9, 0.5]);
  });

  it("gives each class another key", () => {
    const keyed = (): Aggregator => marking(({ key }) => multiply(cast(slice(key!, [0], [1]), "f32"), 2 ** -32));
    const [a, , , , b, , , c] = once(
      partitionAggregator([
        { when: isMatrix, aggregator: keyed() },
        { when: hasAtLeast(2), aggregator: keyed() },
      ]),
      gradient.map(() => 0),
    );
    expect(a).toBe(c);
    expect(a).not.toBe(b);
  });
});
