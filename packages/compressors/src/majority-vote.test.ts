import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stepOnce, worldGradients } from "../test/keyed-step.ts";
import { majorityVoteAggregator } from "./majority-vote.ts";

const vote = majorityVoteAggregator();

describe("majorityVoteAggregator", () => {
  it("is what most ranks say of each entry, +1 for zeros and where votes tie", () => {
    fc.assert(
      fc.property(worldGradients(9), (gradients) => {
        const outcome = gradients[0]!.map((_, i) => (gradients.reduce((sum, g) => sum + (g[i]! < 0 ? -1 : 1), 0) < 0 ? -1 : 1));
        for (const { mean, sent } of stepOnce(vote, gradients)) expect([mean, sent]).toEqual([outcome, outcome]);
      }),
      { numRuns: 60 },
    );
  });

  it("counts the votes of 1 to 17 ranks at every number of them", () => {
    for (let numRanks = 1; numRanks <= 17; numRanks++) {
      // Entry i has i votes against it.
      const gradients = Array.from({ length: numRanks }, (_, rank) =>
        Array.from({ length: numRanks + 1 }, (__, i) => (rank < i ? -3 : 0.5)),
      );
      expect(stepOnce(vote, gradients)[0]!.mean).toEqual(Array.from({ length: numRanks + 1 }, (_, i) => (numRanks - i >= i ? 1 : -1)));
    }
  });

  it("becomes NaN on all ranks by one bad entry of one rank", () => {
    for (const bad of [NaN, Infinity, -Infinity]) {
      for (const [numRanks, broken] of [
        [1, 0],
        [3, 2],
        [4, 0],
      ] as const) {
        const gradients = Array.from({ length: numRanks }, (_, rank) => [1, -2, rank === broken ? bad : 3, 4]);
        for (const { mean } of stepOnce(vote, gradients)) expect(mean).toEqual([NaN, NaN, NaN, NaN]);
      }
    }
  });

  it("sends a bit per entry there and one back, and a word that says whether all is finite", () => {
    const bucket = { dtype: "f32", shape: [6400], tensors: [] } as const;
    expect(vote.bytesSent(bucket, 4)).toBe(2 * 3 * 4 * (50 + 1));
    expect(vote.bytesSent(bucket, 1)).toBe(0);
  });
});
