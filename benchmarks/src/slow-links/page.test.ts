import { linkCosts } from "@skein/collectives";
import { parseLinkFile } from "@skein/collectives/node";
import { expect, test } from "vitest";
import { planConvergence } from "../convergence/plan.ts";
import { planSearch } from "../convergence/search-plan.ts";
import type { RangePlot } from "../report/range-plot.ts";
import type { JobFile } from "../studies/job-file.ts";
import { orderingsSection } from "../studies/orderings-section.ts";
import { madeResults } from "../studies/made-results.ts";
import type { Outcome } from "../studies/outcome.ts";
import { resultOf, type Results } from "../studies/results-file.ts";
import { linkFileOf, networks } from "./links.ts";
import { methods } from "./methods.ts";
import { orderings } from "./orderings.ts";
import { slowLinksPage } from "./page.ts";
import { isClaimed, planSlowLinks, type SlowLinksRun } from "./plan.ts";

const done = (seconds: number): Extract<Outcome, { kind: "done" }> => ({
  kind: "done",
  testLoss: 1,
  steps: 20,
  batch: 64,
  bytesSentPerStep: 3072,
  denseBytesPerStep: 20_480,
  stepSeconds: { median: seconds, mad: 0.01, n: 15 },
  exposedSeconds: { median: seconds / 4, mad: 0, n: 15 },
  peakMemoryBytes: 1,
});

/**
 * Results of a search that chose the highest rate everywhere. All methods reached the quality of dense training, except
 * random-k.
 */
const searched = madeResults(planSearch({ quick: false }), ({ factor }) => ({ ...done(1), testAccuracy: factor / 10 }));
const judged = madeResults(
  planConvergence({ quick: false, seeds: [1, 2, 3], resultsOf: () => searched }),
  ({ setting }): Outcome => ({ ...done(1), testAccuracy: setting.name === "random-k" ? 0.1 : 0.9 }),
);
const resultsOf = (study: string): Results => (study === "search" ? searched : judged);
const plan = (found = resultsOf): SlowLinksRun[] => planSlowLinks({ quick: false, seeds: [1], resultsOf: found });

test("what is timed is what convergence validated: optimizer, rate, clipping and compression are the same but for the warm-up of the latter", () => {
  const rows = planConvergence({ quick: false, seeds: [1], resultsOf });
  const runs = plan();
  for (const { name, job, model, method } of runs) {
    const row = rows.find(
      (one) => one.model.name === model.validatedAs && one.setting.name === (method.setting ?? "identity"),
    )!;
    const part = ({ optimizer, learningRate, clipNorm, compression }: JobFile): unknown => {
      const { warmupSteps: _, densityWarmup: __, chunkBytes: ___, ...kept } = compression as JobFile;
      return { optimizer, learningRate, clipNorm, compression: kept };
    };
    expect([name, part(job)]).toEqual([name, part(row.job)]);
    expect(job["compression"]).not.toHaveProperty(["warmupSteps"]);
    expect(job["compression"]).not.toHaveProperty(["densityWarmup"]);
  }
  const gpt = runs.find(({ name }) => name === "1-gbps/4-ranks/gpt/bsp-g-top-k")!;
  expect(gpt.job).toMatchObject({
    learningRate: { peak: 0.012 },
    clipNorm: 1,
    compression: { kind: "g-top-k", density: 0.04 },
  });
});

test("without a search nothing can be timed, and without convergence nothing is claimed", () => {
  const [none, only] = [plan(() => new Map()), plan((study) => (study === "search" ? searched : new Map()))];
  expect(none.every(({ lacks }) => lacks?.includes("pnpm bench search"))).toBe(true);
  expect(only.every(({ lacks }) => lacks === undefined)).toBe(true);
  expect([...new Set(only.map(({ standing }) => standing))]).toEqual(["dense", "not run"]);
});

test("a method that fails to converge is marked, and no sentence is built on it", () => {
  const runs = plan().filter(
    ({ network, ranks, model }) => network.name === "1-gbps" && ranks === 4 && model.name === "gpt",
  );
  const seconds: Readonly<Record<string, number>> = {
    bsp: 0.4,
    "wait-free-512-kib": 0.3,
    "bsp-random-k": 0.1,
    "bsp-top-k": 0.2,
  };
  const results = madeResults(runs, ({ method }) =>
    seconds[method.name] === undefined ? undefined : done(seconds[method.name]!),
  );
  const plots: RangePlot[] = [];
  const page = slowLinksPage(
    runs,
    (run) => resultOf(results, run),
    (plot) => {
      plots.push(plot);
      return `![${plot.name}](x.svg)`;
    },
  );
  const [, image, sentences] = page.slice(page.indexOf("## 1 Gbit/s")).split("\n\n");
  expect(image).toBe("![1-gbps-4-gpt](x.svg)");
  expect(sentences!.split("\n")).toEqual([
    "Dense training in one message (bsp) waits for 25 % of a step: what hides or saves all of that is 1.33 times as fast.",
    "Of methods that send dense gradients, wait-free-512-kib is fastest: 300 ms per step, 1.33 times as fast as bsp.",
    "Of 2 methods that compress, as far as they hold their margin (1), bsp-top-k is fastest: 200 ms per step, 2.00 times as fast as bsp.",
  ]);
  expect(plots[0]!.rows.map(({ label, value, solid }) => [label, Number(value.toFixed(6)), solid])).toEqual([
    ["bsp", 1, true],
    ["wait-free-512-kib", 1.333333, true],
    ["bsp-top-k", 2, true],
    ["bsp-random-k", 4, false],
  ]);
  const row = page.split("\n").find((line) => line.startsWith("| bsp-random-k "))!;
  expect(row).toContain("| **fails**");
});

test("a method stands beside the exchange after the backward pass of its own network, ranks and model", () => {
  const runs = plan();
  const outcomes: Readonly<Record<string, Outcome>> = {
    "1-gbps/4-ranks/gpt/bsp": done(0.4),
    "1-gbps/4-ranks/gpt/dear-512-kib": done(0.2),
    "1-gbps/8-ranks/gpt/dear-512-kib": done(0.1),
    "1-gbps/4-ranks/gpt/bsp-agoq": { kind: "refused", reason: "no such kind" },
  };
  const results = madeResults(runs, ({ name }) => outcomes[name]);
  const page = slowLinksPage(
    runs,
    (run) => resultOf(results, run),
    () => "",
  );
  expect(page.match(/^## .*$/gm)).toEqual([
    "## 1 Gbit/s, 50 µs, 4 ranks: GPT of 4 layers and 128 features, windows of 128 bytes",
    "## 1 Gbit/s, 50 µs, 8 ranks: GPT of 4 layers and 128 features, windows of 128 bytes",
    "## What the papers say",
    "## What fell short",
  ]);
  const rows = page
    .split("\n")
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .filter((cells) => cells[1] === "dear-512-kib");
  expect(rows.map((cells) => cells.slice(2, 7))).toEqual([
    ["200 ± 10.0 (15)", "320", "2.00×", "50.0", "3.0"],
    ["100 ± 10.0 (15)", "640", "–", "25.0", "3.0"],
  ]);
  expect(page).toContain("- 1-gbps/4-ranks/gpt/bsp-agoq: refused: no such kind.");
});

test("an ordering holds, is even within what medians waver by, or does not hold; one of a method that does not converge is not counted", () => {
  const runs = plan().filter(({ network, ranks }) => network.name === "1-gbps" && ranks === 4);
  const overlapped: Readonly<Record<string, number>> = { resnet: 0.3, gpt: 0.37, cnn: 0.8 };
  const outcomeOf = ({ model, method }: SlowLinksRun): Outcome | undefined =>
    method.name === "bsp" ? done(0.4) : method.name === "wait-free-512-kib" ? done(overlapped[model.name]!) : undefined;
  const plots: RangePlot[] = [];
  const section = (of: typeof outcomeOf, own = runs): string =>
    orderingsSection({ runs: own, outcomeOf: of, orderings, isClaimed }, (plot) => `${plots.push(plot)}`);
  const cells = (text: string): string[] =>
    text
      .split("\n")
      .at(-1)!
      .split("|")
      .map((cell) => cell.trim());
  expect(cells(section(outcomeOf)).slice(1, 5)).toEqual([
    "overlap beats none",
    "wait-free-512-kib / bsp",
    "1.33, 1.08, 0.50 ✗",
    "2 / 0 / 1",
  ]);
  expect(plots[0]!.rows).toMatchObject([
    { value: expect.closeTo(1.081, 3), low: 0.5, high: expect.closeTo(1.333, 3), solid: true },
  ]);
  const relativeDeviation = (run: SlowLinksRun): Outcome | undefined => {
    const outcome = outcomeOf(run);
    return outcome?.kind === "done" ? { ...outcome, stepSeconds: { ...outcome.stepSeconds, mad: 0.02 } } : outcome;
  };
  expect(section(relativeDeviation)).toContain("1.33, 1.08 =, 0.50 ✗");
  const failing = runs.map((run) => ({
    ...run,
    standing: run.model.name === "cnn" ? ("fails" as const) : run.standing,
  }));
  const marked = section(outcomeOf, failing);
  expect(cells(marked).slice(3, 5)).toEqual(["1.33, 1.08, 0.50 ✗°", "2 / 0 / 0"]);
  expect(marked.split("\n")).toEqual(
    expect.arrayContaining([
      "Of 2 comparisons 2 hold, 0 are even and 0 go the other way; 1 more are left out, since a method in them does not hold its margin.",
      "Claims that hold somewhere and are contradicted nowhere: overlap beats none.",
      "Claims that are contradicted more often than they hold: none.",
    ]),
  );
  expect(plots.at(-1)!.rows[0]).toMatchObject({
    value: expect.closeTo(1.207, 3),
    low: expect.closeTo(1.081, 3),
    note: "2 of 2 hold",
  });
});

test("a claim to be no slower is borne out by what is even", () => {
  const runs = plan().filter(({ network, ranks }) => network.name === "1-gbps" && ranks === 4);
  const outcomeOf = ({ method }: SlowLinksRun): Outcome | undefined =>
    method.name.startsWith("mg-wfbp") ? done(0.4) : undefined;
  expect(orderingsSection({ runs, outcomeOf, orderings, isClaimed }, () => "")).toContain(
    "Claims that hold somewhere and are contradicted nowhere: the exact plan is no slower than the greedy one.",
  );
});

test("every ordering is between two methods of the study", () => {
  const names = methods.map(({ name }) => name);
  for (const { faster, slower } of orderings) expect(names).toEqual(expect.arrayContaining([faster, slower]));
});

test("runs have names of their own and batches that divide among their ranks", () => {
  const runs = plan();
  expect(new Set(runs.map(({ name }) => name)).size).toBe(runs.length);
  for (const { job, ranks } of runs) expect((job["batch"] as number) % ranks).toBe(0);
});

test.each(networks)("the link file of $name is one that skein-train reads, with the emulated α and β", (network) => {
  const { within } = linkCosts(parseLinkFile(linkFileOf(network, 4), "links.json"));
  expect(within.secondsPerByte * network.bytesPerSecond).toBeCloseTo(1, 6);
  expect(within.secondsPerMessage).toBeCloseTo(network.latencySeconds + 150e-6, 9);
});
