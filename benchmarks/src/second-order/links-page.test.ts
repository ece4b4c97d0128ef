import { expect, test } from "vitest";
import { madePage } from "../studies/made-results.ts";
import type { Outcome } from "../studies/outcome.ts";
import { linksOrderings } from "./links-orderings.ts";
import { linksPage } from "./links-page.ts";
import { linksMethods, type LinksRun, planLinks } from "./links-plan.ts";

const runs = planLinks({ quick: false, seeds: [1] });

const done = (seconds: number, form?: string): Extract<Outcome, { kind: "done" }> => ({
  kind: "done",
  testLoss: 1,
  steps: 15,
  batch: 64,
  bytesSentPerStep: 3072,
  denseBytesPerStep: 3072,
  stepSeconds: { median: seconds, mad: 0, n: 12 },
  peakMemoryBytes: 1,
  ...(form !== undefined && { form }),
});

const pageOf = (outcomeOf: (run: LinksRun) => Outcome | undefined): ReturnType<typeof madePage> =>
  madePage(linksPage, runs, outcomeOf);

const cellsAfter = (page: string, heading: string, first: string): string[] =>
  page
    .slice(page.indexOf(heading))
    .split("\n")
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .find((cells) => cells[1] === first)!;

test("every ordering is between two forms of the study, and forms of messages differ in nothing else", () => {
  const names = linksMethods.map(({ name }) => name);
  for (const { faster, slower } of linksOrderings) expect(names).toEqual(expect.arrayContaining([faster, slower]));
  const inTurn = linksMethods.filter(({ name }) => name.startsWith("mpd"));
  expect(inTurn).toHaveLength(4);
  for (const { optimizer } of inTurn)
    expect({ ...optimizer, factorBuckets: 0 }).toEqual({ ...inTurn[0]!.optimizer, factorBuckets: 0 });
});

test("runs have names of their own, batches that divide among their ranks, and traces of twenty steps", () => {
  expect(new Set(runs.map(({ name }) => name)).size).toBe(runs.length);
  for (const { job, ranks } of runs) {
    expect((job["batch"] as number) % ranks).toBe(0);
    expect(job["steps"]).toBeLessThanOrEqual(20);
  }
});

test("all stages are in each step: factors and inverses are made anew in all of them", () => {
  for (const { job, method } of runs)
    if (method.name !== "momentum") expect(job["optimizer"]).toMatchObject({ factorEvery: 1, inverseEvery: 1 });
});

test("an ordering of the paper holds or does not, by timed runs alone", () => {
  const seconds: Readonly<Record<string, number>> = {
    momentum: 0.1,
    spd: 0.2,
    d: 0.3,
    "mpd-planned": 0.15,
    "mpd-per-factor": 0.4,
    "mpd-together": 0.25,
  };
  const { page, plots } = pageOf(({ network, ranks, model, method, kind }) =>
    network.name !== "1-gbps" || ranks !== 4 || model.name !== "gpt" || seconds[method.name] === undefined
      ? undefined
      : done(kind === "traced" ? 9 : seconds[method.name]!),
  );
  const [plot, sentences] = page.split("\n\n");
  expect(plot).toBe("![orderings](x.svg)");
  expect(sentences!.split("\n")).toEqual([
    "Of 5 comparisons 4 hold, 0 are even and 1 go the other way.",
    "Claims that hold somewhere and are contradicted nowhere: one message after all factors beats a message per factor behind computing; planned messages beat one after all factors; planned messages beat one per factor; balanced inverses beat those that all ranks make.",
    "Claims that are contradicted more often than they hold: balanced inverses beat those in turn.",
  ]);
  expect(plots[0]!.rows[0]).toMatchObject({ label: "mpd-together / mpd-per-factor", value: 1.6 });
});

test("a form stands beside momentum with the stages of its traced step, and with what measurements chose", () => {
  const { page, plots } = pageOf(({ network, ranks, model, method, kind }) => {
    if (network.name !== "10-gbps" || ranks !== 2 || model.name !== "cnn") return undefined;
    if (method.name === "momentum") return done(0.1);
    if (method.name === "dp") return { kind: "refused", reason: "no such form" };
    if (method.name !== "auto" && method.name !== "d") return undefined;
    if (kind === "timed")
      return done(method.name === "auto" ? 0.25 : 0.2, method.name === "auto" ? "pad 0.5" : undefined);
    const stage = (seconds: number): { median: number; mad: number; n: number } => ({ median: seconds, mad: 0, n: 12 });
    return {
      ...done(1),
      stageSeconds: { factors: stage(0.04), inverseCommunication: stage(0.012), passes: stage(0.1), rest: stage(0.02) },
    };
  });
  const heading = "## 10 Gbit/s, 50 µs, 2 ranks: a CNN";
  expect(cellsAfter(page, heading, "auto").slice(2, 14)).toEqual([
    "250 ± 0.00 (12)",
    "2.50",
    "40.0",
    "–",
    "–",
    "12.0",
    "–",
    "–",
    "–",
    "120",
    "3.0",
    "pad 0.5",
  ]);
  expect(cellsAfter(page, heading, "dp").at(-2)).toBe("refused: no such form");
  expect(page).toContain(
    "Fastest is d with 200 ms per step, slowest auto with 250 ms; auto chose pad 0.5, and takes 1.25 times as long as the fastest.",
  );
  expect(page).toContain("- 10-gbps/2-ranks/cnn/dp/timed: refused: no such form.");
  expect(plots.find(({ name }) => name === "10-gbps-2-cnn")!.rows.map(({ label, solid }) => [label, solid])).toEqual([
    ["d", true],
    ["auto", false],
  ]);
});
