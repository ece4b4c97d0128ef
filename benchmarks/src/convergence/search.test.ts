import { expect, test } from "vitest";
import { methods } from "../slow-links/methods.ts";
import { orderings } from "../slow-links/orderings.ts";
import { madeFigures, madeResults } from "../studies/made-results.ts";
import type { JobFile } from "../studies/job-file.ts";
import type { Outcome } from "../studies/outcome.ts";
import { resultOf } from "../studies/results-file.ts";
import { chooseRate } from "./choice.ts";
import { models } from "./models.ts";
import { planConvergence } from "./plan.ts";
import { searchPage } from "./search-page.ts";
import { planSearch, type SearchRun } from "./search-plan.ts";
import { settings, settingsOf } from "./settings.ts";

const runs = planSearch({ quick: false });
const [mnist, , gpt] = models as [(typeof models)[0], (typeof models)[0], (typeof models)[0]];
const setting = (name: string): (typeof settings)[0] => settings.find((one) => one.name === name)!;
const rateOf = ({ job }: { readonly job: JobFile }): number => (job["learningRate"] as { readonly peak: number }).peak;

const done = (quality: number): Outcome => ({
  kind: "done",
  ...madeFigures,
  ...(quality <= 1 ? { testAccuracy: quality } : { bitsPerByte: quality }),
});
const diverged: Outcome = { kind: "diverged", reason: "" };

test("every try is judged by a part of the training samples; every row of the study by the test samples, with other seeds", () => {
  for (const quick of [false, true]) {
    const tries = planSearch({ quick });
    const judged = planConvergence({ quick, seeds: [1, 2, 3], resultsOf: () => new Map() });
    for (const { job } of tries) expect((job["data"] as JobFile)["validationFraction"]).toBe(0.1);
    for (const { job } of judged) expect(job["data"]).not.toHaveProperty("validationFraction");
    const seeds = (some: readonly { readonly job: JobFile }[]): unknown[] => [
      ...new Set(some.map(({ job }) => job["seed"])),
    ];
    expect(seeds(tries)).toEqual([101]);
    expect(seeds(judged)).toEqual([1, 2, 3]);
  }
});

test("all settings of a model have as many tries, the dense ones too, and those of one optimizer the same rates", () => {
  for (const [name, tries] of Map.groupBy(runs, ({ model, setting: { name: of } }) => `${model.name}/${of}`))
    expect([name, new Set(tries.map(rateOf)).size]).toEqual([name, 3]);
  for (const model of models) {
    const dense = runs.filter((run) => run.model === model && run.setting.name === "identity");
    for (const one of settingsOf(model).filter(({ job, jobOf }) => job === undefined && jobOf === undefined))
      expect(runs.filter((run) => run.model === model && run.setting === one).map(rateOf)).toEqual(dense.map(rateOf));
  }
  expect(new Set(runs.map(({ name }) => name)).size).toBe(runs.length);
});

test("claims rest on rows whose dense runs are made with them, and on each ordering's methods", () => {
  const inCore = runs.filter(({ core }) => core).map(({ model, setting: { name } }) => `${model.name}/${name}`);
  for (const { core, model, setting: one } of runs)
    if (core) expect(inCore).toContain(`${model.name}/${one.comparedWith}`);
  const settingOf = (name: string): string => methods.find((method) => method.name === name)?.setting ?? "identity";
  for (const { faster, slower } of orderings)
    for (const name of [faster, slower])
      for (const { name: model } of models.filter(({ core }) => core))
        expect(inCore).toContain(`${model}/${settingOf(name)}`);
});

test("a try differs from its row of the study in nothing but rate, seed and split", () => {
  const without = ({ learningRate, data, seed: _, ...job }: JobFile): unknown => {
    const { peak: __, final: ___, ...rate } = learningRate as JobFile;
    const { validationFraction: ____, ...rest } = data as JobFile;
    return [job, rate, rest];
  };
  const judged = planConvergence({ quick: false, seeds: [1], resultsOf: () => new Map() });
  for (const run of runs) {
    const row = judged.find(({ model, setting: of }) => model === run.model && of === run.setting)!;
    expect(without(run.job)).toEqual(without(row.job));
  }
});

const choiceOf = (
  model: (typeof models)[0],
  outcomes: readonly (Outcome | undefined)[],
): ReturnType<typeof chooseRate> => {
  const tries = runs.filter((run) => run.model === model && run.setting.name === "top-k");
  const results = madeResults(tries, (run) => outcomes[tries.indexOf(run)]);
  return chooseRate(model, setting("top-k"), false, (run) => resultOf(results, run));
};

test.each([
  ["the greatest accuracy", mnist, [done(0.5), done(0.7), done(0.6)], 1, false],
  ["the fewest bits", gpt, [done(2.5), done(2.7), done(2.4)], 3, true],
  ["the lower rate of equals", mnist, [done(0.5), done(0.7), done(0.7)], 1, false],
  ["what did not diverge", mnist, [diverged, done(0.1), diverged], 1, false],
  ["the lowest where all diverged", mnist, [diverged, diverged, diverged], 1 / 3, true],
])("%s is chosen", (_, model, outcomes, factor, atEdge) => {
  expect(choiceOf(model, outcomes)).toMatchObject({ factor, atEdge });
});

test("nothing is chosen while a try is missing, or failed for another reason than its rate", () => {
  expect(choiceOf(mnist, [done(0.5), undefined, done(0.6)])).toBeUndefined();
  expect(choiceOf(mnist, [done(0.5), { kind: "too-long", reason: "" }, done(0.6)])).toBeUndefined();
});

test("a row takes the rate that was chosen, with its last one; without a choice it says what to run first", () => {
  const best = (run: SearchRun): Outcome => done(run.model === gpt ? 3 - run.factor / 10 : run.factor / 10);
  const searched = madeResults(runs, (run) => (run.setting.name === "qsgd" ? undefined : best(run)));
  const rows = planConvergence({ quick: false, seeds: [1], resultsOf: () => searched });
  const named = (name: string): (typeof rows)[0] => rows.find((run) => run.name === `${name}/seed-1`)!;
  expect(named("moby-dick-gpt/top-k").job["learningRate"]).toMatchObject({
    peak: 0.012,
    final: 0.0012,
    warmupSteps: 100,
  });
  expect(named("moby-dick-gpt/top-k").lacks).toBeUndefined();
  expect(named("mnist-cnn/qsgd").lacks).toContain(
    "first run pnpm bench search, for this row alone with --only mnist-cnn/qsgd",
  );
  const changed = madeResults(
    runs.map((run) => ({ ...run, job: { ...run.job, batch: 1 } })),
    best,
  );
  const others = planConvergence({ quick: false, seeds: [1], resultsOf: () => changed });
  expect(others.every(({ lacks }) => lacks !== undefined)).toBe(true);
});

test("the page of the search shows every try, and the choice", () => {
  const results = madeResults(runs, ({ model, factor, setting: { name } }) =>
    name === "dgc" && factor === 3 ? diverged : done(model === gpt ? 2 + factor : factor / 5),
  );
  const page = searchPage(runs, (run) => resultOf(results, run));
  const row = (name: string): string[] =>
    page
      .split("\n")
      .find((line) => line.startsWith(`| ${name} `))!
      .split("|")
      .map((cell) => cell.trim());
  expect(row("identity").slice(2, 8)).toEqual([
    "0.000667, 0.002, 0.006",
    "6.67",
    "20.00",
    "**60.00**",
    "0.006",
    "at the edge of what was tried",
  ]);
  expect(row("dgc").slice(3, 7)).toEqual(["6.67", "**20.00**", "diverged", "0.05"]);
});
