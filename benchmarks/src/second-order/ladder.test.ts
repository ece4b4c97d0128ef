import { expect, test } from "vitest";
import { madeFigures, madeResult, madeResults } from "../studies/made-results.ts";
import type { Outcome } from "../studies/outcome.ts";
import { addResult, resultOf, type Results } from "../studies/results-file.ts";
import type { Run } from "../studies/run.ts";
import { climbsIn, ladderName, type LadderRun, planLadder } from "./ladder.ts";
import { methods } from "./methods.ts";
import { ladderPage } from "./page.ts";
import { chooseSetting, planSearch, searchName, type SearchRun } from "./search-plan.ts";
import { tasks } from "./tasks.ts";

const done = (accuracy: number, bits: number): Outcome => ({
  kind: "done",
  ...madeFigures,
  ...(bits === 0 ? { testAccuracy: accuracy / 100 } : { bitsPerByte: bits }),
});

/**
 * Returns search results in which all search runs are equally good, with one exception: with the second value of the
 * method's second option, quality increases with the learning rate above the middle rate.
 */
const searched = (): Results => {
  const outcomeOf = (run: SearchRun): Outcome => {
    const { second, peak } = run.setting;
    const better = second === run.method.second.values[1] ? Math.max(0, peak - run.method.peaks[run.task.name]!) : 0;
    return run.task.target.unit === "%" ? done(50 + better, 0) : done(0, 30 - better);
  };
  const planned = (found: Results): SearchRun[] => planSearch({ quick: false, resultsOf: () => found });
  const first = madeResults(planned(new Map()), outcomeOf);
  return madeResults(planned(first), outcomeOf);
};

const search = searched();
const plan = (own: Results): LadderRun[] =>
  planLadder({
    quick: false,
    seeds: [1, 2, 3],
    resultsOf: (study) => (study === searchName ? search : study === ladderName ? own : new Map()),
  });
const ofOne = (runs: readonly LadderRun[], task: string, method: string): string[] =>
  runs
    .filter((run) => run.task.name === task && run.method.name === method)
    .map(({ steps, seed }) => `${steps}/${seed}`);

test("the best try is taken, of the same number for every method, beyond the first ones where these end too early", () => {
  for (const task of tasks)
    for (const method of methods.filter(({ onlyTimed }) => onlyTimed !== true)) {
      const { best, tries } = chooseSetting(task, method, false, (run: Run) => resultOf(search, run))!;
      expect(tries).toHaveLength(8);
      expect(best.run.setting.second).toBe(method.second.values[1]);
      expect(best.run.setting.peak / method.peaks[task.name]!).toBeCloseTo(9, 0);
    }
});

test("rates on both sides of a middle that is best are tried, and none is chosen before all tries are made", () => {
  const isMiddle = ({ setting, method, task }: SearchRun): boolean => setting.peak === method.peaks[task.name];
  const planned = (found: Results): SearchRun[] =>
    planSearch({ quick: false, resultsOf: () => found }).filter(({ name }) => name.startsWith("mnist-cnn/muon/"));
  const first = madeResults(planned(new Map()), (run) => done(isMiddle(run) ? 99 : 98, 0));
  expect(planned(first).map(({ setting }) => setting.peak)).toEqual([
    0.0033, 0.01, 0.03, 0.0033, 0.01, 0.03, 0.0058, 0.017,
  ]);
  const { task, method } = planned(first)[0]!;
  expect(chooseSetting(task, method, false, (run) => resultOf(first, run))).toBe(undefined);
});

test("without a search nothing can be run, and says what to do", () => {
  const runs = planLadder({ quick: false, seeds: [1, 2, 3], resultsOf: () => new Map() });
  expect(runs.every(({ lacks }) => /first run pnpm bench second-order-search/.test(lacks ?? ""))).toBe(true);
});

test("lengths grow until the mean of three seeds is there; seeds follow where the first one is near", () => {
  const own: Results = new Map();
  const tell = (steps: number, seed: number, accuracy: number): void => {
    const run = plan(own).find(
      (one) => one.task.name === "mnist-cnn" && one.method.name === "eva" && one.steps === steps && one.seed === seed,
    )!;
    addResult(own, madeResult(run, done(accuracy, 0)));
  };
  const planned = (): string[] => ofOne(plan(own), "mnist-cnn", "eva");
  expect(planned()).toEqual(["300/1"]);
  tell(300, 1, 98);
  expect(planned()).toEqual(["300/1", "420/1"]);
  tell(420, 1, 98.9);
  expect(planned()).toEqual(["300/1", "420/1", "420/2", "420/3"]);
  tell(420, 2, 98.9);
  tell(420, 3, 99.1);
  expect(planned()).toEqual(["300/1", "420/1", "420/2", "420/3", "600/1"]);
  tell(600, 1, 98.95);
  tell(600, 2, 99.05);
  expect(climbsIn(plan(own), (run) => resultOf(own, run)).find(({ method }) => method.name === "eva")!.reached).toBe(
    undefined,
  );
  tell(600, 3, 99);
  expect(planned().at(-1)).toBe("600/3");
  const { reached, rungs } = climbsIn(plan(own), (run) => resultOf(own, run)).find(
    ({ task, method }) => task.name === "mnist-cnn" && method.name === "eva",
  )!;
  expect(reached?.steps).toBe(600);
  expect(rungs.map(({ standing }) => standing)).toEqual(["missed", "missed", "reached"]);
  const page = ladderPage(
    plan(own),
    (run) => resultOf(own, run),
    () => "",
    () => new Map(),
  );
  expect(page).toMatch(/\| eva +\| 600 +\| – +\| 99\.00 \(98\.95 to 99\.05\)/);
  expect(page).toContain("rate 0.9, damping 0.00003");
});
