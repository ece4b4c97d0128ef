import { evaluate, jit, randomKey, referenceBackend, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stepOnce } from "../test/keyed-step.ts";
import { aggregateWorld } from "../test/aggregate-world.ts";
import { randomKCompressor, randomPositions } from "./random-k.ts";

const positions = async (seed: number, n: number, k: number): Promise<number[]> =>
  (await evaluate((key: Tensor) => randomPositions(key, n, k), referenceBackend())(randomKey(seed))).toNumbers();

const sizes = fc.integer({ min: 1, max: 60 }).chain((n) => fc.tuple(fc.constant(n), fc.integer({ min: 0, max: n })));

describe("randomPositions", () => {
  it("are distinct and below n", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), sizes, async (seed, [n, k]) => {
        const drawn = await positions(seed, n, k);
        expect(new Set(drawn).size).toBe(k);
        for (const position of drawn) expect(position >= 0 && position < n).toBe(true);
      }),
      { seed: 1 },
    );
  });

  it("are distinct and in range near the maximum size", async () => {
    const n = 2 ** 31 - 1;
    const drawn = await positions(3, n, 5000);
    expect(new Set(drawn).size).toBe(5000);
    expect(Math.min(...drawn)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...drawn)).toBeLessThan(n);
    // A tenth of the indices in each tenth of the range, plus or minus one arc at either end.
    const tenths = new Array<number>(10).fill(0);
    for (const position of drawn) tenths[Math.floor((10 * position) / n)]!++;
    for (const count of tenths) expect(Math.abs(count - 500)).toBeLessThanOrEqual(2);
  });

  it("draw each index equally often, also with arcs of different lengths", async () => {
    const [n, k, numDraws] = [10, 3, 4000];
    const draw = jit((key: Tensor) => randomPositions(key, n, k), referenceBackend());
    const counts = new Array<number>(n).fill(0);
    for (let seed = 0; seed < numDraws; seed++) {
      const drawn = await referenceBackend().download(await draw(randomKey(seed)));
      for (const position of drawn.toNumbers()) counts[position]!++;
    }
    // Five standard deviations; without the rotation, counts would be 1000 or 1333.
    const share = k / n;
    const deviation = Math.sqrt(numDraws * share * (1 - share));
    for (const count of counts) expect(Math.abs(count - numDraws * share)).toBeLessThan(5 * deviation);
  });
});

describe("randomKCompressor", () => {
  const gradients = [1, 2, 3].map((seed) => normalArray([40], seed).toNumbers());
  const mean = gradients[0]!.map((_, i) => gradients.reduce((sum, own) => sum + own[i]!, 0) / 3);

  it("sends the same entries on all ranks, so that those of the mean are exact", () => {
    const ranks = stepOnce(randomKCompressor({ density: 0.2 }), gradients, { seed: 5 });
    const support = (values: readonly number[]): number[] => values.flatMap((v, i) => (v === 0 ? [] : [i]));
    const kept = support(ranks[0]!.mean);
    expect(kept.length).toBe(8);
    ranks.forEach(({ mean: own, sent }, rank) => {
      expect(support(sent)).toEqual(kept);
      kept.forEach((i) => {
        expect(sent[i]).toBe(gradients[rank]![i]);
        expect(own[i]).toBeCloseTo(mean[i]!, 6);
      });
    });
  });

  it("multiplies by n/k if unbiased", () => {
    const [plain] = stepOnce(randomKCompressor({ density: 0.3 }), gradients, { seed: 5 });
    const [scaled] = stepOnce(randomKCompressor({ density: 0.3, scaled: true }), gradients, { seed: 5 });
    scaled!.sent.forEach((value, i) => expect(value).toBeCloseTo((40 / 12) * plain!.sent[i]!, 5));
  });

  it("requires a key and a valid density", () => {
    expect(() => aggregateWorld(randomKCompressor({ density: 0.2 }), gradients)).toThrow(/pass `key` to exchange/);
    expect(() => randomKCompressor({ density: 0 })).toThrow(/density 0 is not in \(0, 1\]/);
  });
});
