import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { squares, stepOnce, worldGradients } from "../test/keyed-step.ts";
import { bucketOf } from "./bucket.ts";
import { scaledSignCompressor, scaledSignPerTensorAggregator } from "./scaled-sign.ts";

describe("scaledSignCompressor", () => {
  it("keeps every sign, +1 for zero, at the mean magnitude, with the theoretical loss", () => {
    fc.assert(
      fc.property(worldGradients(3, 70), (gradients) => {
        stepOnce(scaledSignCompressor(), gradients).forEach(({ sent }, rank) => {
          const g = gradients[rank]!;
          const sum = g.reduce((total, v) => total + Math.abs(v), 0);
          const scale = Math.abs(sent[0] ?? 0);
          expect(Math.abs(scale - sum / Math.max(1, g.length))).toBeLessThanOrEqual(1e-6 * scale);
          expect(sent).toEqual(g.map((v) => (v < 0 ? -scale : scale)));
          // ‖u − C(u)‖² = (1 − ‖u‖₁²/(n‖u‖₂²))‖u‖₂²
          const lost = squares(g.map((v, i) => v - sent[i]!));
          if (g.length > 0)
            expect(Math.abs(lost - (squares(g) - sum ** 2 / g.length))).toBeLessThanOrEqual(1e-5 * squares(g));
        });
      }),
      { numRuns: 60 },
    );
  });

  it("becomes non-finite on all ranks for one non-finite entry of one rank", () => {
    for (const bad of [NaN, Infinity, -Infinity])
      for (const { mean } of stepOnce(scaledSignCompressor(), [
        [1, -2, 3],
        [1, bad, 3],
        [0, 0, 0],
      ]))
        expect(mean.map(Number.isFinite)).toEqual([false, false, false]);
  });
});

describe("scaledSignPerTensorAggregator", () => {
  it("equals scaledSignCompressor on each tensor", () => {
    const tensors = [
      { path: "a", shape: [2, 3] },
      { path: "b", shape: [] },
      { path: "c", shape: [40] },
      { path: "d", shape: [0] },
    ];
    const gradients = [1, -100].map((factor) =>
      Array.from({ length: 47 }, (_, i) => factor * Math.sin(i * i) * (i < 7 ? 1 : 1e-3)),
    );
    const bounds = [0, 6, 7, 47, 47];
    const [whole] = stepOnce(scaledSignPerTensorAggregator(), gradients, { bucket: bucketOf(tensors) });
    const parts = tensors.flatMap(
      (_, t) =>
        stepOnce(
          scaledSignCompressor(),
          gradients.map((g) => g.slice(bounds[t], bounds[t + 1])),
        )[0]!.mean,
    );
    expect(whole!.mean).toEqual(parts);
  });
});
