import { expect, test } from "vitest";
import type { Outcome } from "../studies/outcome.ts";
import { convergencePage } from "./page.ts";
import { type ConvergenceRun, planConvergence } from "./plan.ts";
import { compareQuality, qualityOf } from "./verdict.ts";

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
const bits = (bitsPerByte: number): Outcome => {
  const { testAccuracy: _, ...rest } = done(0) as Extract<Outcome, { kind: "done" }>;
  return { ...rest, bitsPerByte };
};

test("accuracy counts upwards, bits downwards; a margin is met exactly at its edge", () => {
  const margin = { points: 0.5, bits: 0.125 };
  const [dense, worse, better] = [qualityOf([done(0.75)])!, qualityOf([done(0.745)])!, qualityOf([done(0.76)])!];
  expect(compareQuality(worse, dense, margin)).toMatchObject({ worseBy: expect.closeTo(0.5, 9), margin: 0.5 });
  expect(compareQuality(qualityOf([done(0.74)])!, dense, margin).holds).toBe(false);
  expect(compareQuality(better, dense, margin)).toMatchObject({ worseBy: expect.closeTo(-1, 9), holds: true });
  const [denseBits, moreBits, mostBits] = [qualityOf([bits(2)])!, qualityOf([bits(2.125)])!, qualityOf([bits(2.126)])!];
  expect(compareQuality(moreBits, denseBits, margin)).toEqual({ worseBy: 0.125, margin: 0.125, holds: true });
  expect(compareQuality(mostBits, denseBits, margin).holds).toBe(false);
});

test("seeds give mean and range, and no figure while one is missing", () => {
  expect(qualityOf([done(0.5), done(0.75)])).toEqual({ unit: "%", mean: 62.5, range: 25, seeds: 2 });
  expect(qualityOf([done(0.5), undefined])).toBeUndefined();
  expect(qualityOf([done(0.5), { kind: "diverged", reason: "" }])).toBeUndefined();
});

const rowsOf = (page: string, setting: string): string[][] =>
  page
    .split("\n")
    .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()))
    .filter((cells) => cells[1] === setting);

test("a page has a row for every setting and model, with what fell short said once more", () => {
  const runs = planConvergence({ quick: false, seeds: [1] });
  const outcomes: Readonly<Record<string, Outcome>> = {
    "mnist-cnn/identity/seed-1": done(0.99, 20_480),
    "mnist-cnn/identity-momentum/seed-1": done(0.98, 20_480),
    "mnist-cnn/top-k/seed-1": done(0.985),
    "mnist-cnn/dgc/seed-1": done(0.9),
    "mnist-cnn/qsgd/seed-1": { kind: "refused", reason: "no such kind" },
    "mnist-cnn/majority-vote/seed-1": { kind: "diverged", reason: "not finite" },
  };
  const resultOf = (run: ConvergenceRun): never => {
    const outcome = outcomes[run.name];
    return (outcome && { outcome }) as never;
  };
  const page = convergencePage(runs, resultOf as never);
  expect(rowsOf(page, "top-k")[0]!.slice(2, 9)).toEqual(["98.50 %", "0.50", "1.00", "holds", "2.0", "10.0", "12.5 ± 1.0"]);
  // Beside the dense run with momentum, not beside Adam's.
  expect(rowsOf(page, "dgc")[0]!.slice(2, 6)).toEqual(["90.00 %", "8.00", "1.00", "**fails**"]);
  expect(rowsOf(page, "identity")[0]!.slice(2, 6)).toEqual(["99.00 %", "–", "–", ""]);
  expect(rowsOf(page, "qsgd")[0]!.at(-2)).toBe("refused: no such kind");
  expect(rowsOf(page, "qsgd")).toHaveLength(3);
  const short = page.slice(page.indexOf("## What fell short"));
  expect(short.match(/^- .*$/gm)).toEqual([
    "- mnist-cnn/dgc: worse by 8.00 points, allowed 1.00.",
    "- mnist-cnn/majority-vote: diverged: not finite.",
    "- mnist-cnn/qsgd: refused: no such kind.",
  ]);
  expect(short).toContain(`Not run: ${runs.length - 6} of ${runs.length}.`);
});

test("runs have names of their own, and settings stand beside one that exists", () => {
  const runs = planConvergence({ quick: false, seeds: [1, 2] });
  expect(new Set(runs.map(({ name }) => name)).size).toBe(runs.length);
  const names = new Set(runs.map(({ setting }) => setting.name));
  for (const { setting } of runs) expect(names).toContain(setting.beside);
});
