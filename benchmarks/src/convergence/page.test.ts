import { expect, test } from "vitest";
import type { RangePlot } from "../report/range-plot.ts";
import { formatRangePlot } from "../report/range-plot.ts";
import { madeResults } from "../studies/made-results.ts";
import type { Outcome } from "../studies/outcome.ts";
import { resultOf } from "../studies/results-file.ts";
import { convergencePage } from "./page.ts";
import { type ConvergenceRun, planConvergence } from "./plan.ts";
import { planSearch } from "./search-plan.ts";

const done = (testAccuracy: number, bytesSentPerStep = 2048): Outcome => ({
  kind: "done",
  testLoss: 1,
  testAccuracy,
  steps: 10,
  batch: 64,
  bytesSentPerStep,
  denseBytesPerStep: 20_480,
  stepSeconds: { median: 0.0125, mad: 0.001, n: 5 },
  peakMemoryBytes: 1,
});

const searched = madeResults(planSearch({ quick: false }), () => done(0.5));
const plan = (numSeeds: number): ConvergenceRun[] =>
  planConvergence({
    quick: false,
    seeds: Array.from({ length: numSeeds }, (_, i) => i + 1),
    resultsOf: () => searched,
  });

interface Drawn {
  readonly page: string;
  readonly plots: readonly RangePlot[];
}
/** Draws the page from the accuracies or outcomes of three seeds per setting, for the first model. */
const drawn = (outcomes: Readonly<Record<string, readonly (number | Outcome)[]>>, numSeeds = 3): Drawn => {
  const runs = plan(numSeeds);
  const results = madeResults(runs, ({ model, setting, seed }) => {
    const outcome = model.name === "mnist-cnn" ? outcomes[setting.name]?.[seed - 1] : undefined;
    return typeof outcome === "number"
      ? done(outcome, setting.compression["kind"] === "identity" ? 20_480 : 2048)
      : outcome;
  });
  const plots: RangePlot[] = [];
  const page = convergencePage(
    runs,
    (run) => resultOf(results, run),
    (plot) => {
      plots.push(plot);
      return `![${plot.title}](./x.svg)`;
    },
  );
  return { page, plots };
};

const rowsOf = (page: string, setting: string): string[][] =>
  page
    .split("\n")
    .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()))
    .filter((cells) => cells[1] === setting);

const study = {
  identity: [0.99, 0.992, 0.988],
  "identity-momentum": [0.98, 0.98, 0.98],
  "top-k": [0.985, 0.987, 0.986],
  threshold: [0.99, 0.992, 0.979], // the mean is within 1 point, the last seed is not
  dgc: [0.9, 0.9, 0.9],
  qsgd: [{ kind: "refused", reason: "no such kind" }] as const,
  "majority-vote": [0.99, 0.99, { kind: "diverged", reason: "not finite" }] as const,
  "eight-bit": [0.99, 0.99], // a seed is missing
};

test("rows have mean, range and a verdict by their worst seed, beside the dense runs with their optimizer", () => {
  const { page } = drawn(study);
  expect(rowsOf(page, "top-k")[0]!.slice(2, 10)).toEqual([
    "98.60 % (98.50 to 98.70)",
    "0.40 (worst 0.50)",
    "1.00",
    "holds",
    "2.0",
    "10.0",
    "12.5 ± 1.0",
    "0.000667",
  ]);
  expect(rowsOf(page, "threshold")[0]!.slice(3, 6)).toEqual(["0.30 (worst 1.10)", "1.00", "undecided"]);
  expect(rowsOf(page, "dgc")[0]!.slice(3, 6)).toEqual(["8.00 (worst 8.00)", "1.00", "**fails**"]);
  expect(rowsOf(page, "identity")[0]!.slice(3, 6)).toEqual(["–", "–", ""]);
  expect(rowsOf(page, "qsgd")[0]!.at(-2)).toBe("refused: no such kind");
  expect(rowsOf(page, "eight-bit")[0]!.slice(2, 6)).toEqual(["–", "–", "–", ""]);
  expect(rowsOf(page, "qsgd")).toHaveLength(3);
});

test("what fell short is said once more, and how much was not run", () => {
  const { page } = drawn(study);
  const short = page.slice(page.indexOf("## What fell short"));
  expect(short.match(/^- .*$/gm)).toEqual([
    "- mnist-cnn/threshold: undecided; worse by 0.30 points, 1.10 with its worst seed, allowed 1.00.",
    "- mnist-cnn/dgc: fails; worse by 8.00 points, 8.00 with its worst seed, allowed 1.00.",
    "- mnist-cnn/majority-vote: diverged: not finite.",
    "- mnist-cnn/qsgd: refused: no such kind.",
  ]);
  expect(short).toContain(`Not run: ${plan(3).length - 21} of ${plan(3).length}.`);
});

test("a table begins with a plot of its rows and sentences of its figures; one without figures has neither", () => {
  const { page, plots } = drawn(study);
  expect(plots.map(({ name }) => name)).toEqual(["mnist-cnn"]);
  expect(
    plots[0]!.rows.map(({ label, value, low, high, limit, solid }) => [label, value, low, high, limit, solid]),
  ).toEqual([
    ["top-k", expect.closeTo(0.4, 9), expect.closeTo(0.3, 9), expect.closeTo(0.5, 9), 1, true],
    ["threshold", expect.closeTo(0.3, 9), expect.closeTo(-0.2, 9), expect.closeTo(1.1, 9), 1, false],
    ["dgc", expect.closeTo(8, 9), expect.closeTo(8, 9), expect.closeTo(8, 9), 1, false],
  ]);
  expect(formatRangePlot(plots[0]!)).toContain("10.0 × less sent, holds");
  const [, , sentences] = page.slice(page.indexOf("## MNIST")).split("\n\n");
  expect(sentences!.split("\n")).toEqual([
    "Of 5 methods 1 hold their margin; these fail: dgc, majority-vote, qsgd; undecided are threshold.",
    "Of those that hold, top-k sends least: 10.0 times less than dense training, and ends 0.40 points worse on the mean (1.00 points are allowed).",
    "Seeds of dense training (identity) alone lie up to 0.40 points apart: smaller differences between methods mean nothing.",
  ]);
  expect(page.slice(page.indexOf("## Fashion"))).not.toContain("Of 0 methods");
});

test("with one seed nothing is claimed", () => {
  const { page } = drawn(study, 1);
  expect(rowsOf(page, "top-k")[0]!.slice(2, 6)).toEqual(["98.50 %, 1 seed", "0.50 (worst 0.50)", "1.00", "undecided"]);
  expect(page).toContain("No method that sends less than dense training may be claimed to hold.");
});
