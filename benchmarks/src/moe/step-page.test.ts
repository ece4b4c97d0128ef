import { expect, test } from "vitest";
import { madeFigures, madePage } from "../studies/made-results.ts";
import type { Outcome } from "../studies/outcome.ts";
import { stepPage } from "./step-page.ts";
import { planSteps, type StepRun } from "./step-plan.ts";

const runs = planSteps({ quick: false, seeds: [1] });

const done = (seconds: number): Extract<Outcome, { kind: "done" }> => ({
  kind: "done",
  ...madeFigures,
  stepSeconds: { median: seconds, mad: 0.001, n: 16 },
});

test("in each place stands what a job plans beside all that it could have named", () => {
  expect(new Set(runs.map(({ name }) => name)).size).toBe(runs.length);
  const places = Map.groupBy(runs, ({ group, network, ranks }) => [group, network.name, ranks].join());
  expect(places.size).toBe(2 * (3 + 2));
  for (const own of places.values()) {
    expect(own.filter(({ choice }) => choice === "auto")).toHaveLength(1);
    expect(own.length).toBeGreaterThan(2);
  }
});

const secondsOf = ({ group, choice, ranks }: StepRun): number => {
  if (choice === "auto") return ranks === 8 ? 0.08 : 0.052;
  if (group === "shards") return choice === "split-before-gate" ? 0.05 : 0.1;
  return choice.startsWith("duplicate-free") ? 0.05 : 0.1;
};

test("the page tells how near to the best plans come, and which they are", () => {
  const { page, plots } = madePage(stepPage, runs, (run) => done(secondsOf(run)));
  expect(page).toContain("in 6 of 10 places; missed: ways, two hosts, 10 Gbit/s from each rank, 8 ranks 1.60×; ");
  expect(page).toContain("1 Gbit/s from each rank, 4 ranks: split-before-gate, 2.00×");
  expect(page).toMatch(/^\| auto +\| 52\.0 ± 1\.00 \(16\) +\| 1\.92× /m);
  expect(plots[0]!.rows.filter(({ solid }) => solid)).toHaveLength(10);
});

test("what is not known is said", () => {
  const { page, plots } = madePage(stepPage, runs, () => undefined);
  expect(page).toContain("in 0 of 0 places");
  expect(page).toContain("not known yet");
  expect(plots).toEqual([]);
});
