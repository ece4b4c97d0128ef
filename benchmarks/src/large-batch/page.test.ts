import { expect, test } from "vitest";
import { madeFigures, madePage, madeResults } from "../studies/made-results.ts";
import type { Outcome } from "../studies/outcome.ts";
import { type Results, resultOf } from "../studies/results-file.ts";
import { contestants, large, small } from "./contestants.ts";
import { largeBatchPage } from "./page.ts";
import { type LargeBatchRun, planLargeBatch } from "./plan.ts";
import { chooseSetting, planSearch, searchName, type SearchRun } from "./search-plan.ts";

const done = (percent: number): Outcome => ({ kind: "done", ...madeFigures, testAccuracy: percent / 100 });

/** Returns the quality of a search run: best at the second rate of each method, and better with more weight decay. */
const valueOf = ({ contestant, setting }: SearchRun): number =>
  80 +
  (setting.peak === contestant.rates[1]!.peak && setting.coefficient === contestant.rates[1]!.coefficient ? 1 : 0) +
  (setting.weightDecay === 0.005 ? 1 : 0);

const first = planSearch({ quick: false, resultsOf: () => new Map() });
const afterFirst: Results = madeResults(first, (run) => done(valueOf(run)));
const second = planSearch({ quick: false, resultsOf: () => afterFirst });
const searched: Results = madeResults(second, (run) => done(valueOf(run)));

test("the second tries change the best of the first, one thing at a time", () => {
  expect(first.length).toBe(contestants.reduce((sum, { rates }) => sum + rates.length, 0));
  expect(second.length).toBe(first.length + contestants.reduce((sum, { changes }) => sum + changes.length, 0));
  expect(new Set(second.map(({ name }) => name)).size).toBe(second.length);
  for (const contestant of contestants) {
    const choice = chooseSetting(contestant, false, (run) => resultOf(searched, run))!;
    expect(choice.best.run.setting).toMatchObject({
      ...contestant.rates[1],
      weightDecay: contestant.changes.length === 0 ? 0.0005 : 0.005,
    });
    if (contestant.changes.length > 0)
      expect(chooseSetting(contestant, false, (run) => resultOf(afterFirst, run))).toBe(undefined);
  }
});

test("a batch is the same share of an epoch while settings are sought and when they are judged", () => {
  const runs = planLargeBatch({ quick: false, seeds: [1], resultsOf: () => searched });
  for (const { contestant, job } of runs) expect(job["batch"]).toBe(6000 / contestant.batchesPerEpoch);
  for (const { contestant, job } of first) expect(job["batch"]).toBe(4000 / contestant.batchesPerEpoch);
  expect(planLargeBatch({ quick: false, seeds: [1], resultsOf: () => new Map() })[0]!.lacks).toContain(searchName);
});

const pageOf = (percents: Readonly<Record<string, number>>): ReturnType<typeof madePage> =>
  madePage(
    largeBatchPage,
    planLargeBatch({ quick: false, seeds: [1, 2, 3], resultsOf: () => searched }),
    ({ contestant, job }: LargeBatchRun) => {
      const mean = percents[contestant.name];
      return mean === undefined ? undefined : done(mean + 0.1 * ((job["seed"] as number) - 2));
    },
  );

test("says how far apart both are, and whether seeds tell them apart", () => {
  const { page, plots } = pageOf({ [large]: 88, [small]: 89 });
  expect(page).toContain("steps of LARS on large batches get 88.00 % (87.90 % to 88.10 %) right of the test pictures");
  expect(page).toContain("The large batches are 1.00 points behind, in every seed");
  expect(page).toContain("How plain momentum does on the large batches is not known yet.");
  expect(plots[0]!.rows.map(({ label, solid }) => [label, solid])).toEqual([
    [small, false],
    [large, true],
  ]);
  expect(pageOf({ [large]: 89.05, [small]: 89 }).page).toContain("0.05 points ahead, which seeds do not tell apart");
});

test("a page without results says that nothing is known", () => {
  const { page, plots } = pageOf({ [small]: 89 });
  expect(plots).toEqual([]);
  expect(page).toContain("What large batches by LARS come to is not known yet.");
});
