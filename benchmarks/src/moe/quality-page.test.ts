import { expect, test } from "vitest";
import { madeFigures, madePage, madeResults } from "../studies/made-results.ts";
import type { Outcome } from "../studies/outcome.ts";
import type { Results } from "../studies/results-file.ts";
import { contestants } from "./contestants.ts";
import { qualityPage } from "./quality-page.ts";
import { planQuality, type QualityRun } from "./quality-plan.ts";
import { planSearch, searchName } from "./search-plan.ts";

const done = (bitsPerByte: number, droppedShare?: number): Outcome => ({
  kind: "done",
  ...madeFigures,
  bitsPerByte,
  ...(droppedShare !== undefined && { experts: { droppedShare, imbalance: 2, entropy: 1 } }),
});

/** Results of a search in which the middle rate is best for every variant. */
const searched: Results = madeResults(planSearch({ quick: false }), ({ peak }) => done(peak === 0.008 ? 2.5 : 2.7));
const runs = planQuality({ quick: false, seeds: [1, 2, 3], resultsOf: () => searched });

const pageOf = (bits: Readonly<Record<string, number>>): ReturnType<typeof madePage> =>
  madePage(qualityPage, runs, ({ contestant, job }: QualityRun) => {
    const mean = bits[contestant.name];
    return mean === undefined ? undefined : done(mean + 0.01 * ((job["seed"] as number) - 2), 0.125);
  });

test("every contestant has its own best rate, and none that is not sought", () => {
  expect(runs.map(({ peak }) => peak)).toEqual(runs.map(() => 0.008));
  expect(runs.every(({ lacks }) => lacks === undefined)).toBe(true);
  const unsought = planQuality({ quick: false, seeds: [1], resultsOf: () => new Map() });
  expect(unsought[0]!.lacks).toContain(`first run pnpm bench ${searchName}`);
  expect(new Set(runs.map(({ name }) => name)).size).toBe(3 * contestants.length);
});

test("better is who beats dense in every seed; who sees later bytes stands apart", () => {
  const { page, plots } = pageOf({ dense: 2.6, switch: 2.55, sigmoid: 2.59, soft: 1, "noisy-top-k": 2.65 });
  expect(page).toContain(
    "The dense GPT comes to 2.600 bits per byte; with equal flops per token, better in every seed: switch 2.550.",
  );
  expect(page).toContain("Not better in every seed: sigmoid 2.590, noisy-top-k 2.650; not finished: cosine, ");
  const [causal, later] = page.split("## Gates that see later bytes") as [string, string];
  expect(causal).not.toMatch(/^\| soft /m);
  expect(later).toMatch(/^\| soft +\| 1\.000 \(0\.990 to 1\.010\) +\| 1\.600 +\| 12\.5 % /m);
  expect(plots[0]!.rows.map(({ label, solid }) => [label, solid])).toEqual([
    ["dense", true],
    ["noisy-top-k", false],
    ["switch", true],
    ["sigmoid", false],
  ]);
});

test("a page without results says that nothing is known", () => {
  const { page, plots } = pageOf({});
  expect(plots).toEqual([]);
  expect(page).toContain("an unknown number of bits per byte");
});
