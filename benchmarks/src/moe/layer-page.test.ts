import { expect, test } from "vitest";
import { madeFigures, madePage } from "../studies/made-results.ts";
import type { Outcome } from "../studies/outcome.ts";
import { layerPage, plannedChunks, plannedWay } from "./layer-page.ts";
import { flat, type LayerRun, numbersOfRanks, planLayer, sizes, ways } from "./layer-plan.ts";

const runs = planLayer({ quick: false, seeds: [1] });

const done = (seconds: number, bytesSentPerStep = 1e6): Extract<Outcome, { kind: "done" }> => ({
  kind: "done",
  ...madeFigures,
  bytesSentPerStep,
  stepSeconds: { median: seconds, mad: 0.001, n: 16 },
});

test("all ranks have equally many experts, placed or not, and hosts equally many ranks", () => {
  expect(new Set(runs.map(({ name }) => name)).size).toBe(runs.length);
  expect([...new Set(runs.map(({ ranks }) => ranks))].toSorted((a, b) => a - b)).toEqual(numbersOfRanks);
  for (const { job, isPlaced } of runs) {
    const { options } = job["model"] as { readonly options: { readonly placement?: readonly number[] } };
    expect(options.placement !== undefined).toBe(isPlaced);
    if (options.placement !== undefined)
      expect(options.placement.toSorted((a, b) => a - b)).toEqual(
        Array.from({ length: sizes.numExperts }, (_, i) => i),
      );
  }
});

test("ways are set beside the flat one of their place, placed experts beside those in order", () => {
  const secondsOf = ({ group, way, isPlaced, chunks, network }: LayerRun): number => {
    if (group === "places") return isPlaced ? 0.1 : 0.13;
    if (group === "chunks") return network.name === "memory" ? 0.06 : chunks === 2 ? 0.05 : 0.08; // two chunks are best
    return way.name === "duplicate-free" ? 0.05 : 0.1;
  };
  const { page, plots } = madePage(layerPage, runs, (run) => done(secondsOf(run)));
  expect(page).toContain("2.00× (wanted 1.50×) on 4 ranks, 2.00× (wanted 1.50×) on 8 ranks.");
  expect(page).toContain("ragged on 4 ranks 1.30× (wanted 1.20×), duplicate-free on 4 ranks 1.30× (wanted 1.20×)");
  expect(page).toContain(
    "ways over 1 Gbit/s: duplicate-free-ranks on 2 ranks, 1.00× the time of the best; duplicate-free on 4 ranks, 1.00×",
  );
  expect(page).toMatch(/^\| ragged, in 2 +\| 50\.0 ± 1\.00 \(16\) +\| 1\.60× /m);
  expect(plots[0]!.rows.every(({ label }) => !label.endsWith("ragged"))).toBe(true);
});

test("what was missed is said, and what is not known", () => {
  expect(madePage(layerPage, runs, () => done(0.1)).page).toContain("1.00× (wanted 1.50×, missed) on 4 ranks");
  expect(madePage(layerPage, runs, () => undefined).page).toContain("not known yet");
  const begun = madePage(layerPage, runs, ({ way }) => (way.name === flat ? done(0.1) : undefined));
  expect(begun.plots).toEqual([]); // no result to compare with the flat way yet
});

test("more chunks are planned where travelling takes about as long as computing and chunks cost little, else one", () => {
  const alone = (each: number) => [1, 2, 4, 8].map((chunks) => ({ chunks, seconds: 0.3 + each * chunks }));
  const way = ways.find(({ name }) => name === flat)!;
  const chunksOf = (each: number, bytesPerSecond: number) =>
    plannedChunks(way, alone(each), { ranks: 4, bytesPerSecond });
  expect(chunksOf(0.001, 1e8)).toBeGreaterThan(1);
  expect(chunksOf(0.1, 1e8)).toBe(1);
  expect(chunksOf(0.001, 1e12)).toBe(1);
});

test("a token that crosses the line once needs fewer chunks, and is the way over slow links", () => {
  const alone = [1, 2, 4, 8].map((chunks) => ({ chunks, seconds: 0.12 + 0.003 * chunks }));
  const on = (bytesPerSecond: number) => ({ ranks: 4, bytesPerSecond });
  const [ragged, once] = [flat, "duplicate-free"].map((name) => ways.find((way) => way.name === name)!);
  expect(plannedChunks(once!, alone, on(1.25e8))).toBeLessThan(plannedChunks(ragged!, alone, on(1.25e8)));
  expect(plannedWay(ways, on(1.25e8))).toBe(once);
  expect(plannedWay(ways, on(1e15))!.name).toBe("dense"); // the dense way has the fewest start-ups
});
