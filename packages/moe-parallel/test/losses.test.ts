import { NdArray, type Tensor, valueAndGrad } from "@skein/tensor-core";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AuxiliaryLoss, balanceLoss, importanceLoadLoss, type RouterScores, zLoss } from "../src/index.ts";
import { runRanks } from "./world.ts";

type Arrays = Readonly<Record<"logits_TE" | "probabilities_TE", NdArray>> & {
  readonly choices_TK?: NdArray;
  readonly noise?: Readonly<Record<"noisy_TE" | "deviation_TE", NdArray>>;
};

const table = (rows: readonly (readonly number[])[], dtype: "f32" | "i32" = "f32"): NdArray =>
  NdArray.from(rows.flat(), [rows.length, rows[0]!.length], dtype);

const valueOf = (loss: AuxiliaryLoss, scores: Arrays): number =>
  (runRanks((own: RouterScores) => loss(own, []), [[scores as never]])[0] as unknown as NdArray).item();

const gradientOf = (loss: AuxiliaryLoss, name: "logits_TE" | "probabilities_TE", scores: Arrays): number[] => {
  const fn = (own: Tensor, all: RouterScores): Tensor => loss({ ...all, [name]: own }, []);
  const [[, gradient]] = runRanks(valueAndGrad(fn) as never, [[scores[name], scores]] as never) as unknown as [
    [NdArray, NdArray],
  ];
  return gradient.toNumbers();
};

const numExperts = 4;
const probabilityRow = fc
  .array(fc.integer({ min: 1, max: 60 }), { minLength: numExperts, maxLength: numExperts })
  .map((parts) => {
    const total = parts.reduce((a, b) => a + b, 0);
    return parts.map((part) => part / total);
  });
const logitRow = fc.array(
  fc.integer({ min: -20, max: 20 }).map((value) => value / 8),
  {
    minLength: numExperts,
    maxLength: numExperts,
  },
);
const rows = <T>(row: fc.Arbitrary<T>, count: number): fc.Arbitrary<T[]> =>
  fc.array(row, { minLength: count, maxLength: count });
const choiceRow = fc
  .constantFrom(1, 2, 4)
  .chain((numChoices) => rows(fc.shuffledSubarray([0, 1, 2, 3], { minLength: numChoices, maxLength: numChoices }), 4));

describe("balanceLoss", () => {
  const one = balanceLoss({ coefficient: 1 });
  const scores = (probabilities: readonly number[][], choices: readonly number[][]): Arrays => ({
    logits_TE: table(probabilities),
    probabilities_TE: table(probabilities),
    choices_TK: table(choices, "i32"),
  });

  test("equals E · Σ f p, of all choices or of the first choices, and never exceeds E", () => {
    fc.assert(
      fc.property(
        rows(probabilityRow, 4),
        choiceRow,
        fc.constantFrom("all" as const, "first" as const),
        (p, chosen, counted) => {
          const flat = counted === "all" ? chosen.flat() : chosen.map((own) => own[0]!);
          const f = Array.from({ length: 4 }, (_, e) => flat.filter((own) => own === e).length / flat.length);
          const expected =
            4 * f.reduce((total, share, e) => total + (share * p.reduce((s, row) => s + row[e]!, 0)) / 4, 0);
          const value = valueOf(balanceLoss({ coefficient: 0.5, choices: counted }), scores(p, chosen));
          expect(value).toBeCloseTo(0.5 * expected, 5);
          expect(2 * value).toBeLessThan(4 + 1e-5);
        },
      ),
      { numRuns: examples(40, 500) },
    );
  });

  test("is 1 for uniform loads or probabilities, and at least 1 if loads and probabilities are equal", () => {
    fc.assert(
      fc.property(rows(probabilityRow, 4), choiceRow, (p, chosen) => {
        const even = [[0], [1], [2], [3]];
        expect(valueOf(one, scores(p, even))).toBeCloseTo(1, 5);
        expect(
          valueOf(
            one,
            scores(
              p.map(() => [0.25, 0.25, 0.25, 0.25]),
              chosen,
            ),
          ),
        ).toBeCloseTo(1, 5);
        const loads = [0, 1, 2, 3].map((e) => chosen.flat().filter((own) => own === e).length / chosen.flat().length);
        expect(
          valueOf(
            one,
            scores(
              p.map(() => loads),
              chosen,
            ),
          ),
        ).toBeGreaterThan(1 - 1e-5);
      }),
      { numRuns: examples(30, 300) },
    );
  });

  test("is below 1 if experts are chosen often by small margins: 1 is not a lower bound", () => {
    const p = Array.from({ length: 10 }, (_, token) => (token < 6 ? [0.51, 0.49] : [0.01, 0.99]));
    const chosen = p.map(([first, second]) => [first! > second! ? 0 : 1]);
    expect(valueOf(one, scores(p, chosen))).toBeCloseTo(0.924, 3);
  });

  test("makes frequent choices less probable: the gradient is E f / T", () => {
    const p = [
      [0.4, 0.3, 0.2, 0.1],
      [0.1, 0.2, 0.3, 0.4],
    ];
    expect(
      gradientOf(
        one,
        "probabilities_TE",
        scores(p, [
          [0, 1],
          [0, 2],
        ]),
      ),
    ).toEqual([1, 0.5, 0.5, 0, 1, 0.5, 0.5, 0]);
  });

  test("without choices there is no load, and a mixture is rejected", () => {
    const p = [[0.4, 0.3, 0.2, 0.1]];
    expect(valueOf(one, scores(p, [[-1, 2]]))).toBeCloseTo(4 * 0.2, 6);
    expect(valueOf(one, scores(p, [[-1, -1]]))).toBe(0);
    expect(() => valueOf(one, { logits_TE: table(p), probabilities_TE: table(p) })).toThrow(
      /balanceLoss: a gate that mixes tokens makes no choices, so loads are equal; leave this loss out/,
    );
    expect(() => balanceLoss({ coefficient: 0 })).toThrow(/coefficient is 0/);
    expect(() => balanceLoss({ choices: "some" as never })).toThrow(/choices is some; use all or first/);
  });
});

test("zLoss is the mean square of log Σ exp, and pulls logits towards it", () => {
  fc.assert(
    fc.property(rows(logitRow, 3), (logits) => {
      const own: Arrays = { logits_TE: table(logits), probabilities_TE: table(logits) };
      const lse = logits.map((row) => Math.log(row.reduce((total, value) => total + Math.exp(value), 0)));
      const expected = (0.25 * lse.reduce((total, value) => total + value ** 2, 0)) / 3;
      expect(valueOf(zLoss({ coefficient: 0.25 }), own)).toBeCloseTo(expected, 4);
    }),
    { numRuns: examples(20, 200) },
  );
  expect(() => zLoss({ coefficient: -1 })).toThrow(/coefficient is -1/);
});

describe("importanceLoadLoss", () => {
  const variation = (values: readonly number[]): number => {
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    return values.reduce((total, value) => total + (value - mean) ** 2, 0) / values.length / mean ** 2;
  };
  /**
   * Returns P(Z < z) for a standard normal Z, by Simpson's rule; the approximation of Abramowitz and Stegun, 7.1.26, is
   * not accurate enough.
   */
  const normalBelow = (z: number): number => {
    const bound = Math.max(-8, Math.min(8, z));
    const steps = 2000;
    const h = (bound + 8) / steps;
    let total = 0;
    for (let i = 0; i <= steps; i++) {
      const weight = i === 0 || i === steps ? 1 : i % 2 === 1 ? 4 : 2;
      total += weight * Math.exp(-((-8 + i * h) ** 2) / 2);
    }
    return (total * h) / 3 / Math.sqrt(2 * Math.PI);
  };

  const noisy = fc.record({
    p: rows(probabilityRow, 3),
    logits: rows(logitRow, 3),
    noise: rows(logitRow, 3),
    numChoices: fc.constantFrom(1, 2, 3, 4),
  });

  test("is half the sum of CV² of importance and of load, without the load if all experts are chosen", () => {
    fc.assert(
      fc.property(noisy, ({ p, logits, noise, numChoices }) => {
        const shaken = logits.map((row, t) => row.map((value, e) => value + noise[t]![e]!));
        const deviation = logits.map((row, t) => row.map((_, e) => 0.5 + ((t + e) % 3) / 4));
        const chances = logits.map((row, t) =>
          row.map((value, e) => {
            const others = shaken[t]!.filter((_, other) => other !== e).toSorted((a, b) => b - a);
            return normalBelow((value - others[numChoices - 1]!) / deviation[t]![e]!);
          }),
        );
        const importance = [0, 1, 2, 3].map((e) => p.reduce((total, row) => total + row[e]!, 0));
        const load = [0, 1, 2, 3].map((e) => chances.reduce((total, row) => total + row[e]!, 0));
        const expected = variation(importance) + (numChoices === 4 ? 0 : variation(load));
        const value = valueOf(importanceLoadLoss({ coefficient: 2 }), {
          logits_TE: table(logits),
          probabilities_TE: table(p),
          choices_TK: table(
            logits.map(() => Array.from({ length: numChoices }, (_, k) => k)),
            "i32",
          ),
          noise: { noisy_TE: table(shaken), deviation_TE: table(deviation) },
        });
        expect(value).toBeCloseTo(expected, 3);
      }),
      { numRuns: examples(30, 300) },
    );
  });

  test("without noise counts only importance; equal importances cost nothing", () => {
    const even = [
      [0.1, 0.2, 0.3, 0.4],
      [0.4, 0.3, 0.2, 0.1],
    ];
    const own: Arrays = { logits_TE: table(even), probabilities_TE: table(even), choices_TK: table([[3], [0]], "i32") };
    expect(valueOf(importanceLoadLoss(), own)).toBeCloseTo(0, 6);
    expect(() => importanceLoadLoss({ coefficient: Infinity })).toThrow(/coefficient is Infinity/);
  });
});
