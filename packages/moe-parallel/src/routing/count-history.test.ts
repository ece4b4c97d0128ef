import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addCounts, type CountHistory, countWindow, decayedCounts, meanCounts, recordCounts } from "./count-history.ts";

const empty = fc.oneof(
  fc.integer({ min: 1, max: 4 }).map((maxSteps) => countWindow(3, maxSteps)),
  fc.constantFrom(0, 0.25, 0.5, 1).map((decay) => decayedCounts(3, decay)),
);
const step = fc.array(fc.nat(50), { minLength: 3, maxLength: 3 });
const steps = fc.array(step, { maxLength: 7 });
const remember = (history: CountHistory, all: readonly (readonly number[])[]): CountHistory =>
  all.reduce(recordCounts, history);

describe("counts of experts", () => {
  test("histories of ranks add up to the history of their sums", () => {
    fc.assert(
      fc.property(empty, fc.array(fc.tuple(step, step), { maxLength: 7 }), (history, both) => {
        const [a, b] = [0, 1].map((rank) =>
          remember(
            history,
            both.map((counts) => counts[rank]!),
          ),
        );
        const sums = both.map(([own, other]) => own.map((count, expert) => count + other[expert]!));
        expect(addCounts(a!, b!)).toEqual(remember(history, sums));
      }),
    );
  });

  test("a window is the mean of its last steps, independent of earlier steps", () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 4 }), (all, maxSteps) => {
        const last = all.slice(-maxSteps);
        const history = remember(countWindow(3, maxSteps), all);
        expect(history).toEqual(remember(countWindow(3, maxSteps), last));
        meanCounts(history).forEach((mean, expert) =>
          expect(mean * Math.max(1, last.length)).toBeCloseTo(
            last.reduce((sum, counts) => sum + counts[expert]!, 0),
            9,
          ),
        );
      }),
    );
  });

  test("a decayed mean is exact from the first step on: constant counts stay, decay 1 weights all steps equally, 0 only the last", () => {
    fc.assert(
      fc.property(steps, step, fc.constantFrom(0, 0.25, 0.9, 1), (all, constant, decay) => {
        const still = remember(decayedCounts(3, decay), [constant, ...all.map(() => constant)]);
        meanCounts(still).forEach((mean, expert) => expect(mean).toBeCloseTo(constant[expert]!, 9));
        if (all.length === 0) return;
        expect(meanCounts(remember(decayedCounts(3, 0), all))).toEqual(all.at(-1));
        meanCounts(remember(decayedCounts(3, 1), all)).forEach((mean, expert) =>
          expect(mean).toBeCloseTo(all.reduce((sum, counts) => sum + counts[expert]!, 0) / all.length, 9),
        );
      }),
    );
  });

  test("an empty history has no load, and JSON loses nothing", () => {
    fc.assert(
      fc.property(empty, steps, (history, all) => {
        expect(meanCounts(history)).toEqual([0, 0, 0]);
        const remembered = remember(history, all);
        expect(JSON.parse(JSON.stringify(remembered))).toEqual(remembered);
      }),
    );
  });

  test("rejects other numbers of experts or steps, and histories that do not match", () => {
    expect(() => countWindow(2, 0)).toThrow(/maxSteps is 0/);
    expect(() => countWindow(0, 1)).toThrow(/numExperts is 0/);
    expect(() => decayedCounts(2, 1.5)).toThrow(/decay is 1\.5/);
    expect(() => recordCounts(countWindow(2, 1), [1])).toThrow(/1 counts for 2 experts/);
    const once = recordCounts(decayedCounts(1, 0.5), [3]);
    expect(() => addCounts(once, decayedCounts(1, 0.5))).toThrow(/with weight 1, .*with weight 0/);
    expect(() => addCounts(once, countWindow(1, 1))).toThrow(/decay 0\.5 .*a window of 0 of 1 steps/);
    expect(() => addCounts(countWindow(1, 2), countWindow(1, 1))).toThrow(/0 of 2 steps, .*0 of 1 steps/);
  });
});
