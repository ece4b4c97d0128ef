import { add, cast, multiply, NdArray, slice, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Aggregator,
  beginExchange,
  bucketPerTensor,
  bucketsOfSize,
  defineCompressor,
  denseBytes,
  exchange,
  exchangeBytes,
  finishExchange,
  identityCompressor,
  initExchange,
  topKCompressor,
  withErrorFeedback,
} from "../src/index.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { runWorld } from "./world.ts";

interface Gradients {
  readonly b: Tensor;
  readonly w: readonly Tensor[];
}

const shapes = { b: NdArray.zeros("f32", []), w: [NdArray.zeros("f32", [4, 3]), NdArray.zeros("f32", [5])] };
const gradientsOf = (seed: number): { b: NdArray; w: NdArray[] } => ({
  b: normalArray([], seed),
  w: [normalArray([4, 3], seed + 1), normalArray([5], seed + 2)],
});
const numbers = ({ b, w }: { b: NdArray; w: readonly NdArray[] }): number[] =>
  [b, ...w].flatMap((leaf) => leaf.toNumbers());

/** Runs exchange steps on P ranks, with different gradients per step and per rank. */
const run = (numRanks: number, numSteps: number, compressor: Aggregator, buckets?: BucketPlan) => {
  const options = { compressor, ...(buckets && { buckets }) };
  const args = Array.from(
    { length: numRanks },
    (_, rank) => [Array.from({ length: numSteps }, (__, step) => gradientsOf(1000 * rank + 10 * step))] as const,
  );
  const results = runWorld((steps: readonly Gradients[]) => {
    let residuals = initExchange(steps[0]!, options);
    return steps.map((gradients) => {
      const [mean, next] = exchange(gradients, residuals, { ...options, axis: "data" });
      residuals = next;
      return { mean, residuals: next };
    });
  }, args as never) as unknown as { mean: { b: NdArray; w: NdArray[] }; residuals: { residual?: NdArray }[] }[][];
  const meanOf = (step: number): number[] => {
    const each = args.map(([steps]) => numbers(steps[step]!));
    return each[0]!.map((_, i) => each.reduce((sum, own) => sum + own[i]!, 0) / numRanks);
  };
  return { results, meanOf };
};

const plans: readonly (readonly [string, BucketPlan])[] = [
  ["one bucket per tensor", bucketPerTensor(shapes)],
  ["one bucket", bucketsOfSize(shapes, 1e9)],
  ["small buckets", bucketsOfSize(shapes, 24)],
];

describe.each(plans)("exchange with %s", (_, plan) => {
  it.each([1, 2, 3, 5])("on %i ranks: identity gives the mean", (numRanks) => {
    const { results, meanOf } = run(numRanks, 1, identityCompressor(), plan);
    for (const [step] of results)
      numbers(step!.mean).forEach((value, i) => expect(Math.abs(value - meanOf(0)[i]!)).toBeLessThan(1e-7));
  });

  it.each([1, 2, 3, 5])("on %i ranks: top-k of density 1 gives the same as identity", (numRanks) => {
    const dense = run(numRanks, 2, withErrorFeedback(identityCompressor()), plan).results;
    const sparse = run(numRanks, 2, withErrorFeedback(topKCompressor({ density: 1 })), plan).results;
    sparse.forEach((steps, rank) =>
      steps.forEach(({ mean }, step) => expect(numbers(mean)).toEqual(numbers(dense[rank]![step]!.mean))),
    );
  });

  it.each([2, 3])("on %i ranks: every rank gets the same bits, and residuals keep the unsent part", (numRanks) => {
    const numSteps = 4;
    const { results, meanOf } = run(numRanks, numSteps, withErrorFeedback(topKCompressor({ density: 0.25 })), plan);
    for (const steps of results)
      steps.forEach(({ mean }, step) => expect(numbers(mean)).toEqual(numbers(results[0]![step]!.mean)));

    // Σ_t G_t + mean over ranks of the last residual = Σ_t mean gradient, tensor by tensor.
    const paths = ["b", "w.0", "w.1"];
    const sizes: Record<string, number> = { b: 1, "w.0": 12, "w.1": 5 };
    const residual = new Map<string, number[]>(paths.map((path) => [path, new Array<number>(sizes[path]!).fill(0)]));
    for (const steps of results) {
      plan.forEach((bucket, i) => {
        const flat = steps.at(-1)!.residuals[i]!.residual!.toNumbers();
        let at = 0;
        for (const path of bucket)
          for (let j = 0; j < sizes[path]!; j++) residual.get(path)![j]! += flat[at++]! / numRanks;
      });
    }
    const kept = paths.flatMap((path) => residual.get(path)!);
    kept.forEach((value, i) => {
      const sent = results[0]!.reduce((sum, { mean }) => sum + numbers(mean)[i]!, 0);
      const expected = Array.from({ length: numSteps }, (__, step) => meanOf(step)[i]!).reduce((sum, v) => sum + v, 0);
      expect(Math.abs(sent + value - expected)).toBeLessThan(1e-5);
    });
    expect(kept.some((value) => value !== 0)).toBe(true);
  });
});

describe("exchange", () => {
  it("decodes gathered payloads one by one without a joint decoder", () => {
    const joint = topKCompressor({ k: 2 });
    const { decodeSum: _, ...single } = joint;
    const [a, b] = [run(3, 1, joint).results, run(3, 1, defineCompressor(single)).results];
    numbers(a[0]![0]!.mean).forEach((value, i) => expect(numbers(b[0]![0]!.mean)[i]!).toBeCloseTo(value, 6));
  });

  it("gives randomized compressors a key per bucket, and the rank", () => {
    const marked = defineCompressor<[], { values: Tensor }>({
      aggregation: "sum",
      biased: false,
      scope: "tensor",
      init: () => [],
      encode: (g, state, context) => ({
        payload: {
          values: add(add(multiply(g, 0), cast(context!.rank!, "f32")), cast(slice(context!.key!, [0], [1]), "f32")),
        },
        state,
      }),
      decode: ({ values }) => values,
      payloadBytes: () => 0,
    });
    const results = runWorld(
      (gradients: Gradients, key: Tensor) =>
        exchange(gradients, initExchange(gradients, { compressor: marked }), {
          compressor: marked,
          axis: "data",
          key,
        })[0],
      [0, 1].map(() => [gradientsOf(1), NdArray.from([1, 2], [2], "u32")]) as never,
    ) as unknown as { b: NdArray; w: NdArray[] }[];
    const [b, w0] = [results[0]!.b.item(), results[0]!.w[0]!.toNumbers()[0]!];
    expect(b).not.toBe(w0);
  });

  const halfAndAll = { compressor: identityCompressor(), buckets: bucketPerTensor(shapes) };

  it("takes the mean of each path over its own axis", () => {
    // Ranks 0 and 1 hold one half of `w.0`, 2 and 3 the other half. Each half is replicated on two ranks, all other
    // tensors on four.
    const ranks = [0, 1, 2, 3].map((rank) => gradientsOf(100 * rank));
    const means = runWorld(
      (gradients: Gradients) =>
        exchange(gradients, initExchange(gradients, halfAndAll), {
          ...halfAndAll,
          axis: (path) => (path === "w.0" ? "replicas" : "data"),
        })[0],
      ranks.map((own) => [own]) as never,
      {
        mesh: { replicas: 2 },
        groups: {
          replicas: [
            [0, 1],
            [2, 3],
          ],
        },
      },
    ) as unknown as { b: NdArray; w: NdArray[] }[];
    const meanOver = (some: readonly number[], of: (own: (typeof ranks)[number]) => NdArray): number[] => {
      const each = some.map((rank) => of(ranks[rank]!).toNumbers());
      return each[0]!.map((_, i) => each.reduce((sum, own) => sum + own[i]!, 0) / some.length);
    };
    for (const [rank, mean] of means.entries()) {
      const peers = rank < 2 ? [0, 1] : [2, 3];
      mean.w[0]!.toNumbers().forEach((value, i) => expect(value).toBeCloseTo(meanOver(peers, ({ w }) => w[0]!)[i]!, 6));
      mean.w[1]!.toNumbers().forEach((value, i) =>
        expect(value).toBeCloseTo(meanOver([0, 1, 2, 3], ({ w }) => w[1]!)[i]!, 6),
      );
    }
  });

  it("rejects a bucket whose tensors have different axes", () => {
    const options = { ...halfAndAll, buckets: [["b", "w.0", "w.1"]] };
    expect(() =>
      runWorld(
        (gradients: Gradients) =>
          exchange(gradients, initExchange(gradients, options), {
            ...options,
            axis: (path) => (path === "w.0" ? "replicas" : "data"),
          })[0],
        [[gradientsOf(1)]] as never,
      ),
    ).toThrow(/bucket 0 has "b", .* axis "data", and "w\.0", .* axis "replicas"; .* put them into different buckets/);
  });

  it("rejects residuals of another plan, and gradients that are not f32", () => {
    const compressor = identityCompressor();
    const wrong = (): unknown =>
      runWorld(
        (g: Gradients) =>
          exchange(g, initExchange(g, { compressor, buckets: bucketsOfSize(g, 1e9) }), { compressor, axis: "data" })[0],
        [[shapes]] as never,
      );
    expect(wrong).toThrow(/1 residuals were given for 3 buckets/);
    expect(() => initExchange({ w: NdArray.zeros("f16", [2]) }, { compressor })).toThrow(/gradient of "w" is f16/);
  });

  it.each([1, 2, 3])(
    "in two halves on %i ranks equals a single exchange, for compressors with and without halves",
    (numRanks) => {
      const inPieces = identityCompressor({ chunkBytes: 8 });
      for (const compressor of [
        withErrorFeedback(identityCompressor()),
        inPieces,
        withErrorFeedback(topKCompressor({ density: 0.25 })),
      ] as Aggregator[]) {
        const options = { compressor, axis: "data", buckets: bucketsOfSize(shapes, 24) };
        const results = runWorld(
          (gradients: Gradients) => {
            const residuals = initExchange(gradients, options);
            const [mean, next] = exchange(gradients, residuals, options);
            const [pending, nextOfHalves] = beginExchange(gradients, residuals, options);
            return { whole: [mean, next], halves: [finishExchange(gradients, pending, options), nextOfHalves] };
          },
          Array.from({ length: numRanks }, (_, rank) => [gradientsOf(7 * rank)]) as never,
        ) as unknown as { whole: unknown; halves: unknown }[];
        for (const { whole, halves } of results) expect(halves).toEqual(whole);
      }
    },
  );

  it("counts bytes as the formulas do", () => {
    const sparse = withErrorFeedback(topKCompressor({ density: 0.25 }));
    expect(exchangeBytes(shapes, { compressor: sparse }, 2)).toBe(8 * (1 + 3 + 1));
    expect(exchangeBytes(shapes, { compressor: sparse, buckets: bucketsOfSize(shapes, 1e9) }, 2)).toBe(8 * 4);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 64 }), (worldSize) => {
        expect(exchangeBytes(shapes, { compressor: sparse }, worldSize)).toBe(40 * (worldSize - 1));
        expect(denseBytes(shapes, worldSize)).toBeCloseTo((2 * (worldSize - 1) * 72) / worldSize, 9);
        expect(exchangeBytes(shapes, { compressor: identityCompressor() }, worldSize)).toBeCloseTo(
          denseBytes(shapes, worldSize),
          9,
        );
      }),
    );
  });
});
