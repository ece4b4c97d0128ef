import fc from "fast-check";
import { expect, test } from "vitest";
import { batchesUpTo, type BatchTrial, chooseBatch, isOver, minGain } from "./choose-batch.ts";

const triesOf = (seconds: readonly (number | undefined)[]): BatchTrial[] =>
  seconds.map((one, i) => ({
    batch: 2 ** i,
    plannedBytes: 2 ** i,
    ...(one === undefined ? { refused: "no room" } : { secondsPerSample: one }),
  }));

const times = fc.array(fc.option(fc.double({ min: 1e-6, max: 10, noNaN: true }), { nil: undefined }), {
  maxLength: 14,
});

test("no batch is faster by more than the least gain, and no smaller one is as good", () => {
  fc.assert(
    fc.property(times, (seconds) => {
      const tries = triesOf(seconds);
      const chosen = chooseBatch(tries);
      const known = seconds.filter((one) => one !== undefined);
      expect(chosen === undefined).toBe(known.length === 0);
      if (chosen === undefined) return;
      const least = Math.min(...known);
      expect(chosen.secondsPerSample! * (1 - minGain)).toBeLessThanOrEqual(least);
      for (const { batch, secondsPerSample } of tries)
        if (secondsPerSample !== undefined && batch < chosen.batch)
          expect(secondsPerSample * (1 - minGain)).toBeGreaterThan(least);
    }),
  );
});

test("the order in which batches were tried does not matter", () => {
  fc.assert(
    fc.property(times, (seconds) => {
      const tries = triesOf(seconds);
      expect(chooseBatch(tries.toReversed())).toEqual(chooseBatch(tries));
    }),
  );
});

test("a search ends after two doublings without a gain, not after one", () => {
  expect(isOver(triesOf([4, 2, 2]))).toBe(false);
  expect(isOver(triesOf([4, 2, 2, 1]))).toBe(false);
  expect(isOver(triesOf([4, 2, 2, 2]))).toBe(true);
  expect(isOver(triesOf([4, 2, 2, undefined]))).toBe(false);
  expect(isOver(triesOf([4, 4]))).toBe(false);
  // Small gains over several doublings add up.
  expect(isOver(triesOf([4, 3.9, 3.7]))).toBe(false);
  expect(chooseBatch(triesOf([4, 3.9, 3.7, 3.6]))?.batch).toBe(4);
});

test("batches are the unit and its doublings", () => {
  expect(batchesUpTo(6, 50)).toEqual([6, 12, 24, 48]);
  expect(batchesUpTo(6, 5)).toEqual([]);
  expect(batchesUpTo(1, Number.POSITIVE_INFINITY).at(-1)).toBe(2 ** 30);
});
