import { threefryWord } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sampleToken } from "./sample-token.ts";

// Logits are multiples of a quarter, so that some logits are equal and different logits differ clearly.
const scores = fc
  .array(fc.integer({ min: -120, max: 120 }), { minLength: 1, maxLength: 20 })
  .map((list) => Float32Array.from(list, (quarters) => quarters / 4));
const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

/** Returns the index of the first maximum. */
const greedy = (logits: Float32Array): number => logits.indexOf(logits.reduce((a, b) => Math.max(a, b)));

describe("the next token", () => {
  test("is the most likely one at temperature 0, with one candidate, with the smallest probability, and in the limit", () => {
    fc.assert(
      fc.property(scores, share, (logits, u) => {
        const best = greedy(logits);
        expect(sampleToken(logits, { temperature: 0 }, u)).toBe(best);
        expect(sampleToken(logits, { temperature: 1, topK: 1 }, u)).toBe(best);
        expect(sampleToken(logits, { temperature: 1, topP: 1e-12 }, u)).toBe(best);
        expect(logits[sampleToken(logits, { temperature: 1e-9 }, u)]).toBe(logits[best]);
      }),
    );
  });

  test("is one of the allowed tokens, and bounds that allow all change nothing", () => {
    fc.assert(
      fc.property(
        scores,
        share,
        fc.integer({ min: 1, max: 25 }),
        fc.double({ min: 0.01, max: 1 }),
        (logits, u, k, p) => {
          const order = Array.from(logits.keys()).sort((a, b) => logits[b]! - logits[a]! || a - b);
          const drawn = sampleToken(logits, { temperature: 0.8, topK: k, topP: p }, u);
          expect(order.slice(0, k)).toContain(drawn);
          const plain = sampleToken(logits, { temperature: 0.8 }, u);
          expect(sampleToken(logits, { temperature: 0.8, topK: logits.length, topP: 1 }, u)).toBe(plain);
        },
      ),
    );
  });

  test("has the frequency of its softmax among the tokens that reach topP", () => {
    const logits = Float32Array.from([1, 0.2, -0.5, 2, -3]);
    const draws = 20_000;
    const countsOf = (sampling: object): number[] => {
      const counts = [0, 0, 0, 0, 0];
      for (let i = 0; i < draws; i++)
        counts[sampleToken(logits, { temperature: 0.7, ...sampling }, threefryWord([5, 9], i) / 2 ** 32)]!++;
      return counts;
    };
    const weights = Array.from(logits, (score) => Math.exp(score / 0.7));
    const chiSquare = (counts: readonly number[], among: readonly number[]): number => {
      const total = among.reduce((sum, token) => sum + weights[token]!, 0);
      return among.reduce((sum, token) => {
        const expected = (draws * weights[token]!) / total;
        return sum + (counts[token]! - expected) ** 2 / expected;
      }, 0);
    };
    // 99.9 % of fair samples have a smaller chi-square: 18.5 for four degrees of freedom, 10.8 for one.
    expect(chiSquare(countsOf({}), [0, 1, 2, 3, 4])).toBeLessThan(18.5);
    const nucleus = countsOf({ topP: 0.9 }); // the first two tokens have probabilities 0.76 and 0.18
    expect(chiSquare(nucleus, [0, 3])).toBeLessThan(10.8);
    expect(nucleus[0]! + nucleus[3]!).toBe(draws);
  });

  test("cannot be sampled from scores that are not finite", () => {
    expect(() => sampleToken(Float32Array.from([0, Number.NaN]), { temperature: 1 }, 0)).toThrow(
      "the score of token 1 is NaN",
    );
  });
});
