import fc from "fast-check";
import { expect, test } from "vitest";
import { RestartBudget } from "./restart-budget.ts";

test("counts restarts since the last progress, and ends when the budget is used up", () => {
  const budget = new RestartBudget(3, 100);
  expect([100, 100, 200, 200, 200, 200].map((step) => budget.spend(step))).toEqual([1, 2, 1, 2, 3, undefined]);
  expect(new RestartBudget(0, 0).spend(0)).toBeUndefined();
});

test("a run continues while at most the budget's number of consecutive failures find the same newest checkpoint, or an older one", () => {
  const steps = fc.array(fc.nat(5), { maxLength: 30 });
  fc.assert(
    fc.property(steps, fc.integer({ min: 0, max: 4 }), fc.nat(2), (found, most, from) => {
      const budget = new RestartBudget(most, from);
      let best = from;
      let idle = 0;
      for (const step of found) {
        idle = step > best ? 1 : idle + 1;
        best = Math.max(best, step);
        const answer = budget.spend(step);
        expect(answer).toBe(idle > most ? undefined : idle);
        if (answer === undefined) return;
      }
    }),
  );
});
