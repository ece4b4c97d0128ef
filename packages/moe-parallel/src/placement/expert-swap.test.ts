import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { exchangeCases } from "./arbitrary-exchanges.ts";
import { exchangeSeconds } from "./exchange-seconds.ts";
import { checkExpertPlacement, withExpertsSwapped, placeInOrder } from "./expert-placement.ts";
import { planExpertSwap, swapExperts } from "./expert-swap.ts";
import { rankOfSlot, slotOfExpert } from "./placement-lookups.ts";
import { swapSeconds } from "./swap-seconds.ts";

const options = { bytesPerToken: 4, gamma: 10 };
const least = (values: Iterable<number>): number => Math.min(...values);

describe("swapSeconds", () => {
  test("equals the prediction after a real swap, for every pair and number of levels", () => {
    fc.assert(
      fc.property(exchangeCases, ({ routing, placement, levels }) => {
        const { numExperts } = placement;
        for (let numLevels = 1; numLevels <= levels.levels.length + 1; numLevels++) {
          const seconds = swapSeconds(routing, placement, levels, { ...options, numLevels });
          for (let a = 0; a < numExperts; a++)
            for (let b = 0; b < numExperts; b++) {
              const swapped = exchangeSeconds(routing, withExpertsSwapped(placement, a, b), levels, options);
              expect(seconds[a * numExperts + b]! / swapped[numLevels - 1]!).toBeCloseTo(1, 9);
            }
        }
      }),
    );
  });

  test("is symmetric, and does not change for a swap within a rank", () => {
    fc.assert(
      fc.property(exchangeCases, ({ routing, placement, levels }) => {
        const { numExperts } = placement;
        const numLevels = levels.levels.length + 1;
        const seconds = swapSeconds(routing, placement, levels, { ...options, numLevels });
        const slotOf = slotOfExpert(placement);
        for (let a = 0; a < numExperts; a++)
          for (let b = 0; b < numExperts; b++) {
            expect(seconds[a * numExperts + b]).toBe(seconds[b * numExperts + a]);
            if (rankOfSlot(placement, slotOf[a]!) === rankOfSlot(placement, slotOf[b]!))
              expect(seconds[a * numExperts + b]).toBe(seconds[0]);
          }
      }),
    );
  });

  test("keeps precision if almost all messages go to one group that is then emptied", () => {
    // 3000 tokens of expert 0, two of expert 2, and none of 1 and 3: after the swap, only the other messages remain.
    const choices = new Int32Array(3002);
    choices.fill(2, 3000);
    const routing = { numExperts: 4, numChoices: 1, choices };
    const line = { startupSeconds: 0, secondsPerByte: 1 };
    const levels = { numRanks: 2, flat: line, levels: [] };
    const placement = placeInOrder(4, 2);
    const seconds = swapSeconds(routing, placement, levels, { ...options, gamma: 40, numLevels: 1 });
    const [swapped] = exchangeSeconds(routing, withExpertsSwapped(placement, 0, 3), levels, { ...options, gamma: 40 });
    expect(seconds[3]! / swapped!).toBeCloseTo(1, 12);
  });

  test("rejects levels that were not measured, and a plain maximum", () => {
    const routing = { numExperts: 2, numChoices: 1, choices: new Int32Array() };
    const levels = { numRanks: 1, flat: { startupSeconds: 0, secondsPerByte: 1 }, levels: [] };
    const placement = placeInOrder(2, 1);
    expect(() => swapSeconds(routing, placement, levels, { ...options, numLevels: 2 })).toThrow(
      /numLevels is 2, but 1/,
    );
    expect(() => swapSeconds(routing, placement, levels, { ...options, numLevels: 1, gamma: Infinity })).toThrow(
      /gamma is Infinity/,
    );
  });
});

describe("swapExperts", () => {
  test("each swap is the best of all and saves time, and no swap improves the final placement", () => {
    fc.assert(
      fc.property(exchangeCases, ({ routing, placement, levels }) => {
        const { placement: last, swaps } = swapExperts(routing, placement, levels, { ...options, maxSwaps: 4 });
        let current = placement;
        for (const { experts, numLevels, secondsBefore, secondsAfter } of swaps) {
          const times = exchangeSeconds(routing, current, levels, options);
          expect(times[numLevels - 1]).toBe(least(times));
          expect(secondsBefore).toBeCloseTo(least(times), 9);
          expect(secondsAfter).toBe(least(swapSeconds(routing, current, levels, { ...options, numLevels })));
          expect(secondsAfter).toBeLessThan(secondsBefore);
          current = withExpertsSwapped(current, ...experts);
          checkExpertPlacement(current);
          expect(least(exchangeSeconds(routing, current, levels, options))).toBeLessThanOrEqual(
            secondsAfter * (1 + 1e-12),
          );
        }
        expect(last).toEqual(current);
        if (swaps.length < 4) expect(planExpertSwap(routing, last, levels, options)).toBeUndefined();
      }),
    );
  });

  test("separates two busy experts of one rank", () => {
    const choices = Int32Array.from({ length: 40 }, (_, i) => (i % 4 === 3 ? 2 : i % 2));
    const routing = { numExperts: 4, numChoices: 1, choices };
    const levels = { numRanks: 2, flat: { startupSeconds: 1, secondsPerByte: 1 }, levels: [] };
    const swap = planExpertSwap(routing, placeInOrder(4, 2), levels, options);
    expect(swap?.experts).toEqual([0, 2]);
    expect(swap!.secondsAfter).toBeLessThan(swap!.secondsBefore);
  });

  test("brings experts that are chosen together onto one rank, because a token is sent once per rank", () => {
    const routing = { numExperts: 4, numChoices: 2, choices: Int32Array.of(0, 2, 1, 3, 2, 0, 3, 1) };
    const levels = { numRanks: 2, flat: { startupSeconds: 1, secondsPerByte: 1 }, levels: [] };
    const { placement, swaps } = swapExperts(routing, placeInOrder(4, 2), levels, { ...options, maxSwaps: 9 });
    expect(swaps).toHaveLength(1);
    const [first, second] = placement.expertOfSlot;
    expect([0, 2].includes(first!)).toBe([0, 2].includes(second!));
  });

  test("gains nothing if one expert has all load, or without load", () => {
    const levels = { numRanks: 2, flat: { startupSeconds: 1, secondsPerByte: 1 }, levels: [] };
    for (const choices of [new Int32Array(8), new Int32Array(8).fill(-1), new Int32Array()])
      expect(
        planExpertSwap({ numExperts: 4, numChoices: 1, choices }, placeInOrder(4, 2), levels, options),
      ).toBeUndefined();
  });

  test("does not count rounding of reordered sums as gain", () => {
    const choices = Int32Array.of(2, 2, 2, 6, 5, 2, 1, 7, 7, 4, 4, 7);
    const routing = { numExperts: 8, numChoices: 1, choices };
    const levels = { numRanks: 4, flat: { startupSeconds: 1, secondsPerByte: 1 }, levels: [] };
    expect(planExpertSwap(routing, placeInOrder(8, 4), levels, options)).toBeUndefined();
  });

  test("rejects an invalid number of swaps", () => {
    const routing = { numExperts: 2, numChoices: 1, choices: new Int32Array() };
    const levels = { numRanks: 1, flat: { startupSeconds: 0, secondsPerByte: 1 }, levels: [] };
    expect(() => swapExperts(routing, placeInOrder(2, 1), levels, { ...options, maxSwaps: -1 })).toThrow(/-1/);
  });
});
