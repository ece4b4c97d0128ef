import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bernoulli, categorical, dropout, foldIn, normal, randomBits, splitKey, uniform } from "./functions/random.ts";
import type { Tensor } from "./graph/tensor.ts";
import { evaluate } from "./jit.ts";
import { NdArray } from "./nd-array.ts";
import { foldInKey, permutation, randomKey, threefry2x32, threefryWord } from "./random.ts";
import { referenceBackend } from "./reference/reference-backend.ts";

const backend = referenceBackend();
const word = fc.integer({ min: 0, max: 2 ** 32 - 1 });

describe("threefry2x32", () => {
  // Expected results from Random123 1.09, file kat_vectors, threefry2x32 with 20 rounds.
  test.each([
    [
      [0, 0],
      [0, 0],
      [0x6b200159, 0x99ba4efe],
    ],
    [
      [0xffffffff, 0xffffffff],
      [0xffffffff, 0xffffffff],
      [0x1cb996fc, 0xbb002be7],
    ],
    [
      [0x13198a2e, 0x03707344],
      [0x243f6a88, 0x85a308d3],
      [0xc4923a9c, 0x483df7a0],
    ],
  ])("key %j and counter %j give %j", (key, counter, answer) => {
    expect(threefry2x32(key, counter)).toEqual(answer);
  });

  test("distinct counters have distinct words", () => {
    fc.assert(
      fc.property(fc.tuple(word, word), word, word, (key, a, b) => {
        fc.pre(a !== b);
        expect(threefry2x32(key, [a, 0])).not.toEqual(threefry2x32(key, [b, 0]));
      }),
    );
  });
});

describe("streams on the device", () => {
  test("random bits are the host's words", async () => {
    const key = randomKey(42);
    const bits = await evaluate((k: Tensor) => randomBits(k, [3, 7]), backend)(key);
    expect(bits.toNumbers()).toEqual(Array.from({ length: 21 }, (_, i) => threefryWord(key.data, i)));
  });

  test("folded and split keys are the host's and differ from each other", async () => {
    const key = randomKey(2 ** 40 + 3);
    const [folded, ...split] = await evaluate((k: Tensor) => [foldIn(k, 9), ...splitKey(k, 4)], backend)(key);
    expect(folded!.toNumbers()).toEqual(foldInKey(key.data, 9));
    expect(new Set([key, folded!, ...split].map((k) => k.toNumbers().join())).size).toBe(6);
  });

  test("a key of three words is rejected", async () => {
    await expect(() =>
      evaluate((k: Tensor) => randomBits(k, [3]), backend)(NdArray.from([1, 2, 3], [3], "u32")),
    ).rejects.toThrow(/a key must be u32\[2\], got u32\[3\]/);
  });
});

/** Computes the mean and variance of a sample. */
const moments = (values: readonly number[]): [mean: number, variance: number] => {
  const mean = values.reduce((total, value) => total + value, 0) / values.length;
  return [mean, values.reduce((total, value) => total + (value - mean) ** 2, 0) / values.length];
};

describe("distributions", () => {
  const count = 40_000;
  const draw = async (fn: (key: Tensor) => Tensor): Promise<number[]> =>
    (await evaluate(fn, backend)(randomKey(5))).toNumbers();

  test("uniform has the moments of its range and stays inside", async () => {
    const values = await draw((key) => uniform(key, [count], { low: -1, high: 3 }));
    const [mean, variance] = moments(values);
    // Tolerance: five standard errors. The standard error of the mean is 4/√12/√n = 0.0058.
    expect(mean).toBeCloseTo(1, 1);
    expect(Math.abs(mean - 1)).toBeLessThan(0.029);
    expect(Math.abs(variance - 16 / 12)).toBeLessThan(0.03);
    expect(Math.min(...values)).toBeGreaterThanOrEqual(-1);
    expect(Math.max(...values)).toBeLessThan(3);
  });

  test("normal has mean 0, variance 1, and 4.55 % beyond two deviations", async () => {
    const values = await draw((key) => normal(key, [count]));
    const [mean, variance] = moments(values);
    expect(Math.abs(mean)).toBeLessThan(0.025);
    expect(Math.abs(variance - 1)).toBeLessThan(0.036);
    expect(Math.abs(values.filter((value) => Math.abs(value) > 2).length / count - 0.0455)).toBeLessThan(0.0053);
  });

  test("bernoulli is true with its probability", async () => {
    const [mean] = moments(await draw((key) => bernoulli(key, 0.3, [count])));
    expect(Math.abs(mean - 0.3)).toBeLessThan(0.0115);
  });

  test("categorical draws classes by their weights", async () => {
    const weights = [0.1, 0.2, 0.7];
    const logits = NdArray.from(Array.from({ length: 20_000 }, () => weights.map(Math.log)).flat(), [20_000, 3]);
    const classes = (await evaluate(categorical, backend)(randomKey(5), logits)).toNumbers();
    weights.forEach((weight, label) =>
      expect(Math.abs(classes.filter((drawn) => drawn === label).length / 20_000 - weight)).toBeLessThan(0.017),
    );
  });

  test("dropout keeps the expectation and zeroes its share", async () => {
    const values = (
      await evaluate((key: Tensor, x: Tensor) => dropout(x, 0.25, key), backend)(
        randomKey(5),
        NdArray.from(new Array<number>(count).fill(3)),
      )
    ).toNumbers();
    expect(new Set(values)).toEqual(new Set([0, 4]));
    expect(Math.abs(moments(values)[0] - 3)).toBeLessThan(0.044);
  });

  test("dropout of rate 1 is rejected", async () => {
    await expect(() =>
      evaluate((key: Tensor, x: Tensor) => dropout(x, 1, key), backend)(randomKey(5), NdArray.from([1])),
    ).rejects.toThrow(/rate 1 is not a probability below 1/);
  });
});

describe("permutation", () => {
  test("holds every number once", () => {
    fc.assert(
      fc.property(fc.tuple(word, word), fc.integer({ min: 0, max: 300 }), (key, count) => {
        expect([...permutation(key, count)].sort((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, i) => i));
      }),
    );
  });

  test("swaps each position with an earlier one selected by the stream's word of that index", () => {
    fc.assert(
      fc.property(fc.tuple(word, word), fc.integer({ min: 0, max: 60 }), (key, count) => {
        const order = Array.from({ length: count }, (_, i) => i);
        for (let i = count - 1; i > 0; i--) {
          const j = Math.floor((threefryWord(key, i) * (i + 1)) / 2 ** 32);
          [order[i], order[j]] = [order[j]!, order[i]!];
        }
        expect([...permutation(key, count)]).toEqual(order);
      }),
    );
  });

  test("is determined by its key, and every order of three is equally likely", () => {
    const orders = new Map<string, number>();
    for (let seed = 0; seed < 6000; seed++) {
      const order = permutation(randomKey(seed).data, 3).join("");
      orders.set(order, (orders.get(order) ?? 0) + 1);
    }
    expect(orders.size).toBe(6);
    // Tolerance: five standard deviations of a count with expectation 1000 in 6000 trials.
    for (const times of orders.values()) expect(Math.abs(times - 1000)).toBeLessThan(145);
    expect(permutation([1, 2], 50)).toEqual(permutation([1, 2], 50));
  });
});

test("randomKey accepts seeds beyond 32 bits and rejects invalid seeds", () => {
  expect(randomKey(2 ** 32 + 5).toNumbers()).toEqual([5, 1]);
  expect(() => randomKey(-1)).toThrow(/seed -1 is not usable/);
  expect(() => randomKey(0.5)).toThrow(/seed 0.5/);
});
