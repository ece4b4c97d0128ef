import type { BestSoFar } from "@skein/run-files/node";
import fc from "fast-check";
import { expect, test } from "vitest";
import { bestAfter, bestBefore, type Comparison, endsEarly } from "./compare-evaluations.ts";

const byLoss: Comparison = { figure: "loss", better: "lower" };

const after = (values: readonly number[], comparison = byLoss): BestSoFar =>
  values.reduce<BestSoFar | undefined>((best, value, i) => bestAfter(comparison, best, i + 1, value), undefined)!;

test("law: the best is the first with the best finite value, and later ones are counted", () => {
  const value = fc.oneof(
    fc.double({ min: 0, max: 3, noNaN: true }),
    fc.constantFrom(1, 2, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
  );
  fc.assert(
    fc.property(
      fc.array(value, { minLength: 1, maxLength: 12 }),
      fc.constantFrom<Comparison>(byLoss, { figure: "accuracy", better: "higher" }),
      (values, comparison) => {
        const finite = values.filter(Number.isFinite);
        const best = comparison.better === "lower" ? Math.min(...finite) : Math.max(...finite);
        const at = finite.length === 0 ? 0 : values.indexOf(best);
        expect(after(values, comparison)).toEqual({
          figure: comparison.figure,
          better: comparison.better,
          step: at + 1,
          value: finite.length === 0 ? null : best,
          since: values.length - 1 - at,
        });
      },
    ),
  );
});

test("an earlier best by another metric or direction is ignored", () => {
  const best = after([3, 2]);
  expect(bestBefore({ evaluation: { batch: 1 } }, best)).toBe(best);
  expect(bestBefore({ evaluation: { batch: 1, compareBy: { figure: "accuracy", better: "higher" } } }, best)).toBe(
    undefined,
  );
  const other = { evaluation: { batch: 1, stopAfter: 1, compareBy: { figure: "loss", better: "higher" } } } as const;
  expect(bestBefore(other, best)).toBe(undefined);
  expect(bestBefore(other, after([3, 2], other.evaluation.compareBy))).toMatchObject({ value: 3, since: 1 });
  // Checkpoints of earlier versions do not record the direction of the comparison.
  const { better: _, ...older } = best;
  expect(bestBefore(other, older)).toBe(older);
});

test("a run ends early after as many evaluations without improvement as the job allows, and never without that option", () => {
  const ends = (losses: readonly number[], stopAfter: number | undefined): boolean =>
    endsEarly({ evaluation: { batch: 1, stopAfter } }, after(losses));
  expect(ends([3, 2, 2], 2)).toBe(false);
  expect(ends([3, 2, 2, 2.5], 2)).toBe(true);
  expect(ends([3, 2, 2, 2.5], undefined)).toBe(false);
  expect(ends([Number.NaN, Number.NaN], 1)).toBe(true);
  expect(endsEarly({ evaluation: { batch: 1, stopAfter: 1 } }, undefined)).toBe(false);
});
