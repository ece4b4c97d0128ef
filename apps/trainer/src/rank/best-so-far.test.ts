import fc from "fast-check";
import { expect, test } from "vitest";
import { bestAfter, type BestSoFar, endsEarly } from "./best-so-far.ts";

const after = (losses: readonly number[]): BestSoFar =>
  losses.reduce<BestSoFar | undefined>((best, loss, i) => bestAfter(best, i + 1, loss), undefined)!;

test("law: the best is the first with the lowest finite loss, and what came after it is counted", () => {
  const loss = fc.oneof(
    fc.double({ min: 0, max: 3, noNaN: true }),
    fc.constantFrom(1, 2, Number.NaN, Number.POSITIVE_INFINITY),
  );
  fc.assert(
    fc.property(fc.array(loss, { minLength: 1, maxLength: 12 }), (losses) => {
      const finite = losses.filter(Number.isFinite);
      const lowest = Math.min(...finite);
      const at = finite.length === 0 ? 0 : losses.indexOf(lowest);
      expect(after(losses)).toEqual({
        step: at + 1,
        loss: finite.length === 0 ? null : lowest,
        since: losses.length - 1 - at,
      });
    }),
  );
});

test("a run ends early after as many evaluations without a better one as the job says, and never without", () => {
  const ends = (losses: readonly number[], stopAfter: number | undefined): boolean =>
    endsEarly({ evaluation: { batch: 1, stopAfter } }, after(losses));
  expect(ends([3, 2, 2], 2)).toBe(false);
  expect(ends([3, 2, 2, 2.5], 2)).toBe(true);
  expect(ends([3, 2, 2, 2.5], undefined)).toBe(false);
  expect(ends([Number.NaN, Number.NaN], 1)).toBe(true);
  expect(endsEarly({ evaluation: { batch: 1, stopAfter: 1 } }, undefined)).toBe(false);
});
