import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stepOnce, worldGradients } from "../test/keyed-step.ts";
import { majorityVoteAggregator } from "./majority-vote.ts";

const vote = majorityVoteAggregator();

describe("majorityVoteAggregator", () => {
  it("follows the majority of ranks per entry; zeros may vote either way, and ties may end either way", () => {
    fc.assert(
      fc.property(worldGradients(9), fc.nat(1e6), (gradients, seed) => {
        const votes = gradients[0]!.map((_, i) => gradients.map((own) => own[i]!));
        const results = stepOnce(vote, gradients, { seed });
        for (const { mean, sent } of results) expect([mean, sent]).toEqual([results[0]!.mean, mean]);
        results[0]!.mean.forEach((value, i) => {
          const lead = votes[i]!.reduce((sum, own) => sum + Math.sign(own), 0);
          const undecided = votes[i]!.filter((own) => own === 0).length;
          if (Math.abs(lead) > undecided) expect(value).toBe(Math.sign(lead));
          else expect(Math.abs(value)).toBe(1);
        });
      }),
      { numRuns: 60 },
    );
  });

  it("has no bias for ties and for zero gradients", () => {
    const count = 4000;
    const ofRanks = (...values: readonly number[]): number[][] =>
      values.map((value) => new Array<number>(count).fill(value));
    for (const gradients of [
      ofRanks(1, -1),
      ofRanks(2, -3, -1, 4),
      ofRanks(0),
      ofRanks(0, 0, 0),
      ofRanks(0, 0, 1, -1),
    ]) {
      const { mean } = stepOnce(vote, gradients, { seed: 5 })[0]!;
      // Five standard deviations of that many fair coins.
      expect(Math.abs(mean.reduce((sum, own) => sum + own, 0))).toBeLessThan(5 * Math.sqrt(count));
    }
  });

  it("counts the votes of 1 to 17 ranks for every possible count", () => {
    for (let numRanks = 1; numRanks <= 17; numRanks++) {
      // Entry i has i votes against it.
      const gradients = Array.from({ length: numRanks }, (_, rank) =>
        Array.from({ length: numRanks + 1 }, (__, i) => (rank < i ? -3 : 0.5)),
      );
      stepOnce(vote, gradients)[0]!.mean.forEach((value, i) => {
        if (numRanks !== 2 * i) expect(value).toBe(Math.sign(numRanks - 2 * i));
      });
    }
  });

  it("becomes NaN on all ranks for one non-finite entry of one rank", () => {
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

  it("sends a bit per entry in each direction, plus a word that flags non-finite entries", () => {
    const bucket = { dtype: "f32", shape: [6400], tensors: [] } as const;
    expect(vote.bytesSent(bucket, 4)).toBe(2 * 3 * 4 * (50 + 1));
    expect(vote.bytesSent(bucket, 1)).toBe(0);
  });
});
