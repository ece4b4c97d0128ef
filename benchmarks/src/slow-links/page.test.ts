import { linkCosts, parseLinkFile } from "@skein/collectives";
import { expect, test } from "vitest";
import type { Outcome } from "../studies/outcome.ts";
import { linkFileOf, networks } from "./links.ts";
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
