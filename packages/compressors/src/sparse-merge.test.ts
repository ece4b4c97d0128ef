import { evaluate, NdArray, referenceBackend, type Tensor } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contains, countAtMost, mergeLargest } from "./sparse-merge.ts";

const positions = (values: readonly number[]): NdArray => NdArray.from(values, [values.length], "i32");
const sortedSet = (most: number): fc.Arbitrary<number[]> =>
  fc
    .uniqueArray(fc.integer({ min: 0, max: 2 ** 31 - 2 }), { minLength: 1, maxLength: most })
    .map((list) => list.sort((a, b) => a - b));

describe("countAtMost", () => {
  it("counts like a filter, for any list length and for integers that f32 cannot represent", async () => {
    const run = evaluate(
      (sorted: Tensor, queries: Tensor) => [countAtMost(sorted, queries), contains(sorted, queries)],
      referenceBackend(),
    );
    const near = fc.integer({ min: 2 ** 30, max: 2 ** 30 + 12 });
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          sortedSet(20),
          fc.uniqueArray(near, { minLength: 1 }).map((list) => list.sort((a, b) => a - b)),
        ),
        fc.array(fc.oneof(near, fc.integer({ min: 0, max: 2 ** 31 - 2 })), { minLength: 1, maxLength: 10 }),
        async (sorted, others) => {
          const queries = [...sorted, ...others];
          const [counts, found] = await run(positions(sorted), positions(queries));
          expect(counts!.toNumbers()).toEqual(queries.map((query) => sorted.filter((one) => one <= query).length));
          expect(found!.toNumbers()).toEqual(queries.map((query) => Number(sorted.includes(query))));
        },
      ),
    );
  });
});

describe("mergeLargest", () => {
  interface Entries {
    readonly indices: readonly number[];
    readonly values: readonly number[];
  }
  const merge = async (first: Entries, second: Entries, k: number): Promise<Entries> => {
    const run = evaluate(
      (ai: Tensor, av: Tensor, bi: Tensor, bv: Tensor) =>
        mergeLargest({ indices: ai, values: av }, { indices: bi, values: bv }, k) as unknown as {
          indices: Tensor;
          values: Tensor;
        },
      referenceBackend(),
    );
    const { indices, values } = await run(
      positions(first.indices),
      NdArray.from(first.values),
      positions(second.indices),
      NdArray.from(second.values),
    );
    return { indices: indices.toNumbers(), values: values.toNumbers() };
  };

  it("returns the k greatest sums, with equal indices added, and lower indices first among equals", async () => {
    const entries = (k: number): fc.Arbitrary<Entries> =>
      fc
        .uniqueArray(fc.integer({ min: 0, max: 2 * k }), { minLength: k, maxLength: k })
        .chain((list) =>
          fc
            .array(fc.integer({ min: -2, max: 2 }), { minLength: k, maxLength: k })
            .map((values) => ({ indices: list.sort((a, b) => a - b), values })),
        );
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 8 }).chain((k) => fc.tuple(entries(k), entries(k), fc.constant(k))),
        async ([first, second, k]) => {
          const sums = new Map<number, number>();
          for (const { indices, values } of [first, second])
            indices.forEach((at, i) => sums.set(at, (sums.get(at) ?? 0) + values[i]!));
          const expected = [...sums]
            .sort(([i, a], [j, b]) => Math.abs(b) - Math.abs(a) || i - j)
            .slice(0, k)
            .sort(([i], [j]) => i - j);
          const { indices, values } = await merge(first, second, k);
          expect(indices.map((at, i) => [at, values[i]! + 0])).toEqual(expected.map(([at, sum]) => [at, sum + 0]));
        },
      ),
    );
  });

  it("keeps a NaN, also from a sum", async () => {
    const [a, b] = [
      { indices: [2, 5], values: [Infinity, 9] } as const,
      { indices: [2, 7], values: [-Infinity, 8] } as const,
    ];
    expect(await merge(a, b, 2)).toEqual({ indices: [2, 5], values: [NaN, 9] });
  });
});
