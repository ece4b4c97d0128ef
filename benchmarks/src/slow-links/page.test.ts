import { linkCosts } from "@skein/collectives";
import { parseLinkFile } from "@skein/collectives/node";
import { expect, test } from "vitest";
import type { Outcome } from "../studies/outcome.ts";
import { linkFileOf, networks } from "./links.ts";
import { methods } from "./methods.ts";
import { orderings } from "./orderings.ts";
import { orderingsTable } from "./orderings-page.ts";
import { slowLinksPage } from "./page.ts";
import { planSlowLinks, type SlowLinksRun } from "./plan.ts";

const done = (seconds: number): Outcome => ({
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

test("a method stands beside the exchange after the backward pass of its own network, ranks and model", () => {
  const runs = planSlowLinks({ quick: false, seeds: [1] });
  const outcomes: Readonly<Record<string, Outcome>> = {
    "1-gbps/4-ranks/gpt/bsp": done(0.4),
    "1-gbps/4-ranks/gpt/dear-512-kib": done(0.2),
    "1-gbps/8-ranks/gpt/dear-512-kib": done(0.1),
    "1-gbps/4-ranks/gpt/bsp-agoq": { kind: "refused", reason: "no such kind" },
  };
  const resultOf = (run: SlowLinksRun): never => (outcomes[run.name] && { outcome: outcomes[run.name] }) as never;
  const page = slowLinksPage(runs, resultOf as never);
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

test("an ordering holds, is even within what medians waver by, or does not hold", () => {
  const runs = planSlowLinks({ quick: false, seeds: [1] }).filter(({ network, ranks }) => network.name === "1-gbps" && ranks === 4);
  const overlapped: Readonly<Record<string, number>> = { resnet: 0.3, gpt: 0.37, cnn: 0.8 };
  const outcomeOf = ({ model, method }: SlowLinksRun): Outcome | undefined =>
    method.name === "bsp" ? done(0.4) : method.name === "wait-free-512-kib" ? done(overlapped[model.name]!) : undefined;
  const row = orderingsTable(runs, outcomeOf).split("\n").at(-1)!;
  const cells = row.split("|").map((cell) => cell.trim());
  expect(cells.slice(1, 5)).toEqual(["overlap beats none", "wait-free-512-kib / bsp", "1.33, 1.08, 0.50 ✗", "2 / 0 / 1"]);
  const wavering = (run: SlowLinksRun): Outcome | undefined => {
    const outcome = outcomeOf(run);
    return outcome?.kind === "done" ? { ...outcome, stepSeconds: { ...outcome.stepSeconds, mad: 0.02 } } : outcome;
  };
  expect(orderingsTable(runs, wavering)).toContain("1.33, 1.08 =, 0.50 ✗");
});

test("every ordering is between two methods of the study", () => {
  const names = methods.map(({ name }) => name);
  for (const { faster, slower } of orderings) expect(names).toEqual(expect.arrayContaining([faster, slower]));
});

test("runs have names of their own and batches that divide among their ranks", () => {
  const runs = planSlowLinks({ quick: false, seeds: [1] });
  expect(new Set(runs.map(({ name }) => name)).size).toBe(runs.length);
  for (const { job, ranks } of runs) expect((job["batch"] as number) % ranks).toBe(0);
});

test.each(networks)("the link file of $name is one that skein-train reads, with the emulated α and β", (network) => {
  const { within } = linkCosts(parseLinkFile(linkFileOf(network, 4), "links.json"));
  expect(within.secondsPerByte * network.bytesPerSecond).toBeCloseTo(1, 6);
  expect(within.secondsPerMessage).toBeCloseTo(network.latencySeconds + 150e-6, 9);
});
