import { seeded } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { DeviceFacts, MatmulRequest } from "../kernel.ts";
import { minimalDevice } from "../minimal-device.ts";
import { storeKey, webChoiceStore } from "./choice-store.ts";
import {
  choicesFrom,
  heldOutQuality,
  type MatmulMeasurement,
  type MatmulModel,
  rankedChoices,
  selectionQuality,
  trainMatmulModel,
} from "./matmul-model.ts";
import { parseMatmulModel } from "./parse-matmul-model.ts";

const product = (rows: number, columns: number, inner: number): MatmulRequest => ({
  batch: 1,
  rows,
  columns,
  inner,
  transposeA: false,
  transposeB: true,
  dtype: "f32",
});

const direct = "register-64x64-8x8";
const transposed = "transpose-register-64x64-8x8";

/**
 * Returns 1000 products with dimensions 128·2^i and the structure of the published measurements: the transpose is
 * faster mainly for long inner dimensions, with a jump above 4096, and for many rows and columns. Near the border, a
 * little noise decides.
 */
const published = (): MatmulMeasurement[] => {
  const samples: MatmulMeasurement[] = [];
  const next = seeded(7);
  for (let i = 0; i < 10; i++) {
    for (let j = 0; j < 10; j++) {
      for (let l = 0; l < 10; l++) {
        const noise = (next() - 0.5) * 0.16;
        const gain = 0.1 * (i - 4.5) + 0.07 * (j - 4.5) + 0.09 * (l - 4.5) + (l >= 6 ? 0.3 : -0.1) + noise;
        const work = 2 ** (i + j + l) * 1e-9;
        samples.push({
          request: product(128 * 2 ** i, 128 * 2 ** j, 128 * 2 ** l),
          seconds: { [direct]: work * 2 ** (gain / 2), [transposed]: work * 2 ** (-gain / 2) },
        });
      }
    }
  }
  return samples;
};

const rule = (): string => direct;

const chosen = (model: MatmulModel, sample: MatmulMeasurement): string =>
  rankedChoices(model, sample.request)[0] ?? rule();

describe("a trained matmul model", () => {
  test("is right for 88 % of unseen samples like the published ones, with little regret", () => {
    const samples = published();
    const model = trainMatmulModel("an adapter", samples, { rule });
    expect(model.heldOut!.accuracy).toBeGreaterThan(0.88);
    expect(model.heldOut!.regret).toBeLessThan(0.25 * model.fallbackQuality.regret);
    // The model returns measured choices for measured products and predicts the choices for all other products. Only
    // measured products are asserted.
    expect(selectionQuality(samples, (sample) => chosen(model, sample))).toEqual({ accuracy: 1, regret: 0 });
  });

  const anySamples = fc.array(
    fc.record({
      i: fc.integer({ min: 0, max: 7 }),
      j: fc.integer({ min: 0, max: 7 }),
      l: fc.integer({ min: 0, max: 7 }),
      times: fc.array(fc.double({ min: 0.001, max: 1, noNaN: true }), { minLength: 3, maxLength: 3 }),
    }),
    { minLength: 1, maxLength: 40 },
  );
  const measured = (rows: readonly { i: number; j: number; l: number; times: number[] }[]): MatmulMeasurement[] => {
    const seen = new Map<string, MatmulMeasurement>();
    for (const { i, j, l, times } of rows) {
      const request = product(2 ** i, 2 ** j, 2 ** l);
      seen.set(JSON.stringify(request), {
        request,
        seconds: { "direct-4x4": times[0]!, "direct-8x4": times[1]!, [direct]: times[2]! },
      });
    }
    return [...seen.values()];
  };

  test("is never slower than the best fixed choice on measured products", () => {
    fc.assert(
      fc.property(anySamples, (rows) => {
        const samples = measured(rows);
        const model = trainMatmulModel("an adapter", samples, { rule });
        const fallback = model.fallback === "rule" ? direct : model.fallback;
        for (const sample of samples)
          expect(sample.seconds[chosen(model, sample)]!).toBeLessThanOrEqual(sample.seconds[fallback]!);
        // No variant, used for all products, has less regret than the fallback.
        for (const name of Object.keys(samples[0]!.seconds))
          expect(selectionQuality(samples, () => name).regret).toBeGreaterThanOrEqual(model.fallbackQuality.regret);
      }),
      { numRuns: 60 },
    );
  });

  test("has regret that is never negative and 0 exactly if every choice is a best one, with chosen times between minimum and maximum", () => {
    fc.assert(
      fc.property(anySamples, fc.constantFrom("direct-4x4", "direct-8x4", "no such variant"), (rows, name) => {
        const samples = measured(rows);
        const { accuracy, regret } = selectionQuality(samples, () => name);
        expect(regret).toBeGreaterThanOrEqual(0);
        expect(accuracy === 1).toBe(regret === 0);
        const model = trainMatmulModel("an adapter", samples, { rule });
        for (const sample of samples) {
          const times = Object.values(sample.seconds);
          expect(sample.seconds[chosen(model, sample)]!).toBeGreaterThanOrEqual(Math.min(...times));
          expect(sample.seconds[chosen(model, sample)]!).toBeLessThanOrEqual(Math.max(...times));
        }
      }),
      { numRuns: 60 },
    );
  });

  test("keeps the fallback if times do not depend on sizes", () => {
    const next = seeded(3);
    const samples = published().map(({ request }) => ({
      request,
      seconds: { [direct]: 1, [transposed]: next() > 0.25 ? 1.5 : 0.99 },
    }));
    const model = trainMatmulModel("an adapter", samples, { rule });
    expect(model.fallback).toBe("rule");
    expect(model.products).toEqual([]);
    expect(model.heldOut!.regret).toBeGreaterThanOrEqual(model.fallbackQuality.regret);
  });

  test("is the same after a second training, and after a round trip through JSON", () => {
    const samples = published().slice(0, 200);
    const model = trainMatmulModel("an adapter", samples, { rule });
    expect(trainMatmulModel("an adapter", samples, { rule })).toEqual(model);
    expect(parseMatmulModel(JSON.parse(JSON.stringify(model)))).toEqual(model);
  });

  test("judges a held-out shape by other sizes, not by another layout of the shape", () => {
    const small = { [direct]: 1, [transposed]: 3 };
    const large = { [direct]: 5, [transposed]: 1 };
    const samples = [
      { request: product(64, 64, 64), seconds: small },
      { request: { ...product(64, 64, 64), transposeA: true }, seconds: small },
      { request: { ...product(4096, 4096, 4096), transposeB: false }, seconds: large },
    ];
    // For each size, the nearest different size has a different fastest variant, so each choice is wrong.
    expect(heldOutQuality(samples, rule)).toEqual({ accuracy: 0, regret: (2 + 2 + 4) / 3 });
    expect(heldOutQuality(samples.slice(0, 2), rule)).toBeUndefined();
    expect(trainMatmulModel("an adapter", samples.slice(0, 2), { rule }).products).toEqual([]);
  });

  test("learns nothing without measurements", () => {
    const model = trainMatmulModel("an adapter", [], { rule });
    expect(rankedChoices(model, product(64, 64, 64))).toEqual([]);
  });
});

const facts: DeviceFacts = { ...minimalDevice, adapter: "an adapter" };

describe("choices of a model", () => {
  const model = trainMatmulModel("an adapter", published(), { rule });

  test("use the model for variants that the device can run", () => {
    const { matmulVariant } = choicesFrom(model, facts);
    expect(matmulVariant!(product(65536, 65536, 65536))).toBe(transposed);
    expect(matmulVariant!(product(128, 128, 128))).toBe(direct);
  });

  test("skip a variant that cannot run this product", () => {
    const { matmulVariant } = choicesFrom(model, facts);
    // Transposing b is not a variant if the layout of b is already transposed.
    expect(matmulVariant!({ ...product(65536, 65536, 65536), transposeB: false })).toBe(direct);
  });

  test("fall back on the rule for unmeasured devices", () => {
    const { matmulVariant } = choicesFrom(trainMatmulModel("an adapter", [], { rule }), facts);
    expect(matmulVariant!(product(1, 64, 64))).toBe("matrix-vector");
  });
});

describe("stores", () => {
  test("adapters with equal simple names have different keys", () => {
    expect(storeKey("NVIDIA A-1")).not.toBe(storeKey("nvidia a 1"));
    expect(storeKey("NVIDIA A-1")).toMatch(/^[a-z0-9-]+$/);
  });

  test("a web store returns what was stored, by adapter", async () => {
    const items = new Map<string, string>();
    const store = webChoiceStore({
      getItem: (key) => items.get(key) ?? null,
      setItem: (key, value) => void items.set(key, value),
    });
    const model = trainMatmulModel("an adapter", published().slice(0, 50), { rule });
    expect(await store.load("an adapter")).toBeUndefined();
    await store.save(model);
    expect(await store.load("an adapter")).toEqual(model);
    expect(await store.load("another")).toBeUndefined();
  });

  test("a value that is not a model is rejected with the field and the cure", async () => {
    const load = (text: string): Promise<unknown> =>
      webChoiceStore({ getItem: () => text, setItem: () => undefined }).load("an adapter");
    const model = trainMatmulModel("an adapter", published().slice(0, 50), { rule });
    await expect(load('{"version":1}')).rejects.toThrow(
      /not a matmul model of version 2 \(version: .*measure the device again/,
    );
    await expect(load("[]")).rejects.toThrow(/\(all of it: .*measure the device again/);
    await expect(load(JSON.stringify(model).slice(0, -1))).rejects.toThrow(
      /not a matmul model of version 2 \(.*JSON.*measure the device again/,
    );
    const broken: readonly [string, object][] = [
      ["products.0.fastest", { products: [{ request: product(1, 1, 1), fastest: [] }] }],
      ["products.0.request.rows", { products: [{ request: product(-1, 1, 1), fastest: [direct] }] }],
      [
        "products.0.request.dtype",
        { products: [{ request: { ...product(1, 1, 1), dtype: "f64" }, fastest: [direct] }] },
      ],
      ["fallback", { fallback: "" }],
      ["heldOut.regret", { heldOut: { accuracy: 1, regret: null } }],
    ];
    for (const [field, part] of broken)
      await expect(load(JSON.stringify({ ...model, ...part }))).rejects.toThrow(`(${field}: `);
  });
});
