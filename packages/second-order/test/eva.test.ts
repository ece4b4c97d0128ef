import { NdArray } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { eva, evaF, type EvaOptions, evaS } from "../src/index.ts";
import { kronecker, matrixOf, outer, plusDiagonal, solve } from "./dense.ts";
import { applyOnce, denseLayer, scalar } from "./steps.ts";

const free = { size: "free" } as const;

/** Returns the update direction of one step with the given vectors. */
const direction = (
  method: typeof eva,
  { gradient, a, g, bias }: { gradient: number[][]; a: number[]; g: number[]; bias?: number[] },
  options: Partial<EvaOptions>,
) =>
  applyOnce(
    method({ layers: [denseLayer(a.length, g.length, bias !== undefined)], ...free, ...options }),
    { w: NdArray.from(gradient), ...(bias !== undefined && { b: NdArray.from(bias) }) },
    { input: NdArray.from(a), ...(method === eva && { gradient: NdArray.from(g) }) },
  );

const entry = fc.integer({ min: -40, max: 40 }).map((value) => value / 16);
const problem = fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 4 })).chain(([n, m]) =>
  fc.record({
    gradient: fc.array(fc.array(entry, { minLength: m, maxLength: m }), { minLength: n, maxLength: n }),
    a: fc.array(entry, { minLength: n, maxLength: n }),
    g: fc.array(entry, { minLength: m, maxLength: m }),
    damping: fc.constantFrom(0.01, 0.5, 8),
  }),
);

const expectNear = (actual: readonly number[], expected: readonly number[], relative = 1e-5): void => {
  const size = Math.max(1e-20, ...expected.map(Math.abs));
  actual.forEach((value, i) => expect(Math.abs(value - expected[i]!)).toBeLessThanOrEqual(relative * size));
};

describe("eva", () => {
  test("returns the value computed by hand", () => {
    // ā = (1, 2), ḡ = (½, −1), γ = ½ and ∇ = [[1, 0], [2, −1]] by outputs: β = ½ / 6.75.
    const { updates } = direction(
      eva,
      {
        gradient: [
          [1, 2],
          [0, -1],
        ],
        a: [1, 2],
        g: [0.5, -1],
      },
      { damping: 0.5 },
    );
    expectNear(updates["w"]!, [1.925926, 4.148148, -0.148148, -1.703704], 1e-6);
  });

  test("equals the dense solve with āāᵀ ⊗ ḡḡᵀ + γI, and Eva-f that with āāᵀ + γI", () => {
    fc.assert(
      fc.property(problem, ({ gradient, a, g, damping }) => {
        const flat = gradient.flat();
        const both = plusDiagonal(kronecker(outer(a, a), outer(g, g)), damping);
        expectNear(direction(eva, { gradient, a, g }, { damping }).updates["w"]!, solve(both, flat), 1e-4);
        const inputs = plusDiagonal(outer(a, a), damping);
        const columns = g.map((_, j) =>
          solve(
            inputs,
            gradient.map((row) => row[j]!),
          ),
        );
        const expected = a.flatMap((_, i) => columns.map((column) => column[i]!));
        expectNear(direction(evaF, { gradient, a, g }, { damping }).updates["w"]!, expected, 1e-4);
      }),
      { numRuns: 60 },
    );
  });

  test("treats a bias as an additional input", () => {
    fc.assert(
      fc.property(problem, ({ gradient, a, g, damping }) => {
        const last = gradient.at(-1)!;
        fc.pre(gradient.length > 1);
        const joined = direction(eva, { gradient, a, g }, { damping }).updates["w"]!;
        const parts = direction(eva, { gradient: gradient.slice(0, -1), a, g, bias: [...last] }, { damping }).updates;
        expectNear([...parts["w"]!, ...parts["b"]!], joined);
      }),
      { numRuns: 30 },
    );
  });

  test("is the gradient over γ if orthogonal to ā ḡᵀ, and short if parallel to it", () => {
    fc.assert(
      fc.property(problem, ({ gradient, a, g, damping }) => {
        const along = outer(a, g).flat();
        const square = along.reduce((sum, value) => sum + value ** 2, 0);
        fc.pre(square > 0.1);
        const share = along.reduce((sum, value, i) => sum + value * gradient.flat()[i]!, 0) / square;
        const orthogonal = gradient.flat().map((value, i) => value - share * along[i]!);
        const of = (values: number[]): number[] =>
          direction(eva, { gradient: matrixOf(values, g.length), a, g }, { damping }).updates["w"]!;
        const size = Math.max(...gradient.flat().map(Math.abs), 1e-9);
        of(orthogonal).forEach((value, i) =>
          expect(Math.abs(value - orthogonal[i]! / damping)).toBeLessThan((2e-5 * size) / damping),
        );
        expectNear(
          of(along),
          along.map((value) => value / (damping + square)),
          1e-4 * (1 + square / damping),
        );
      }),
      { numRuns: 40 },
    );
  });

  test("descends, by at most the gradient over γ, and reports the effect of curvature", () => {
    fc.assert(
      fc.property(problem, ({ gradient, a, g, damping }) => {
        const { updates, state } = direction(eva, { gradient, a, g }, { damping });
        const dot = (x: readonly number[], y: readonly number[]): number => x.reduce((sum, v, i) => sum + v * y[i]!, 0);
        const [v, flat] = [updates["w"]!, gradient.flat()];
        expect(dot(v, flat)).toBeGreaterThanOrEqual(-1e-5 * dot(flat, flat));
        expect(Math.hypot(...v)).toBeLessThanOrEqual((1.00001 * Math.hypot(...flat)) / damping);
        const { curvature } = (state as { figures: Record<string, unknown> }).figures;
        const expected = dot(flat, flat) === 0 ? 0 : 1 - (damping * dot(v, flat)) / dot(flat, flat);
        expect(scalar(curvature)).toBeCloseTo(expected, 4);
      }),
      { numRuns: 40 },
    );
  });

  test("size: the KL clip bounds η² ν² Σ⟨V, ∇⟩, gradient-norm keeps the norm, and a learning rate of 0 divides by nothing", () => {
    fc.assert(
      fc.property(problem, fc.constantFrom(0, 1e-4, 0.1, 3), ({ gradient, a, g, damping }, learningRate) => {
        const flat = gradient.flat();
        const plain = direction(eva, { gradient, a, g }, { damping }).updates["w"]!;
        const inner = plain.reduce((sum, value, i) => sum + value * flat[i]!, 0);
        const clipped = direction(eva, { gradient, a, g }, { damping, size: "kl-clip", klClip: 1e-3, learningRate });
        const nu = scalar((clipped.state as { figures: Record<string, unknown> }).figures["sizeFactor"]);
        expect(nu).toBeGreaterThan(0);
        expect(nu).toBeLessThanOrEqual(1);
        const divergence = learningRate ** 2 * nu ** 2 * inner;
        expect(divergence).toBeLessThanOrEqual(1e-3 * 1.001);
        if (nu < 0.999) expect(divergence).toBeCloseTo(1e-3, 6);
        expectNear(
          clipped.updates["w"]!,
          plain.map((value) => nu * value),
          1e-4,
        );
        const kept = direction(eva, { gradient, a, g }, { damping, size: "gradient-norm" }).updates["w"]!;
        expect(Math.hypot(...kept)).toBeCloseTo(Math.hypot(...flat), 3);
      }),
      { numRuns: 60 },
    );
  });

  test("averages from the first statistics on, and skips non-finite ones", () => {
    const optimizer = eva({ layers: [denseLayer(2, 1)], ...free, decay: 0.75 });
    const gradients = { w: NdArray.from([[1], [1]]) };
    const statisticsOf = (values: number[]) => ({ input: NdArray.from(values), gradient: NdArray.from([1]) });
    const { state } = applyOnce(optimizer, gradients, statisticsOf([2, 4]));
    const vectors = (state as { vectors: { w: { input: NdArray } } }).vectors.w.input.toNumbers();
    expect(vectors).toEqual([2, 4]);
    const bad = applyOnce(optimizer, gradients, statisticsOf([NaN, 4])).state as { vectors: { w: { input: NdArray } } };
    expect(bad.vectors.w.input.toNumbers()).toEqual([0, 0]);
  });

  test("rejects options out of range in one line", () => {
    const layers = [denseLayer(2, 2)];
    const refusals: [() => unknown, RegExp][] = [
      [() => eva({ layers, ...free, damping: -0.1 }), /eva: damping is -0\.1.*positive number such as 0\.03/],
      [() => eva({ layers, ...free, damping: NaN }), /damping is NaN/],
      [() => eva({ layers, ...free, decay: 1 }), /decay is 1.*below 1/],
      [() => eva({ layers: [], ...free }), /no layer to precondition.*momentum/],
      [() => eva({ layers }), /needs the learning rate.*gradient-norm/],
      [() => eva({ layers, learningRate: 0.1, klClip: 0 }), /klClip is 0/],
      [() => evaF({ layers, size: "other" as never }), /evaF: size is other/],
      [() => evaS({ ...free, variant: "third" as never }), /variant is third/],
    ];
    for (const [refused, message] of refusals) expect(refused).toThrow(message);
  });
});

describe("evaS", () => {
  test.each(["product", "roots"] as const)("%s: equals the dense solve with its rank-one matrix", (variant) => {
    fc.assert(
      fc.property(problem, ({ gradient, damping }) => {
        const [n, m] = [gradient.length, gradient[0]!.length];
        const u = gradient.map((row) => row.reduce((sum, value) => sum + value, 0) / m);
        const v = gradient[0]!.map((_, j) => gradient.reduce((sum, row) => sum + row[j]!, 0) / n);
        const [nu, nv] = [Math.hypot(...u), Math.hypot(...v)];
        fc.pre(nu > 0.05 && nv > 0.05);
        const divided = (matrix: number[][], by: number): number[][] => matrix.map((row) => row.map((x) => x / by));
        const curvature =
          variant === "product"
            ? kronecker(outer(u, u), outer(v, v))
            : kronecker(divided(outer(u, u), nu), divided(outer(v, v), nv));
        const { updates } = applyOnce(evaS({ damping, variant, ...free }), { w: NdArray.from(gradient) });
        expectNear(updates["w"]!, solve(plusDiagonal(curvature, damping), gradient.flat()), 2e-4);
      }),
      { numRuns: 40 },
    );
  });

  test("does not change vectors and zero gradients", () => {
    const { updates } = applyOnce(evaS({ ...free }), { b: NdArray.from([1, -2]), w: NdArray.from([[0, 0]]) });
    expect(updates).toEqual({ b: [1, -2], w: [0, 0] });
  });
});
