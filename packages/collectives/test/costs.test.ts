import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { algorithms } from "../src/algorithms/table.ts";
import { sentElements, sentMessages } from "../src/schedule.ts";
import { messageEnds, placeOf, regionElements } from "./world.ts";

interface CostRow {
  readonly name: string;
  readonly kind: string;
  readonly rounds: (P: number, S: number) => number;
  readonly messages: (P: number, S: number) => number;
  readonly bytes: (P: number, S: number) => number;
}

/** `2 · (P − 1) / P · S` as a function. The page writes mathematics; only its signs differ from the language's. */
const formula = (text: string): ((P: number, S: number) => number) => {
  const code = text
    .replaceAll("·", "*")
    .replaceAll("−", "-")
    .replaceAll("log₂P", "Math.log2(P)")
    .replaceAll("⌈", "Math.ceil(")
    .replaceAll("⌊", "Math.floor(")
    .replaceAll(/[⌉⌋]/g, ")");
  return new Function("P", "S", `const Q = 2 ** Math.floor(Math.log2(P)); return ${code};`) as (P: number, S: number) => number;
};

const page = readFileSync(new URL("../../../docs/algorithms.md", import.meta.url), "utf8");
const rows: CostRow[] = page
  .split("\n")
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .filter((cells) => cells.length === 8 && cells[1]!.startsWith("`"))
  .map(([, name, kind, rounds, messages, bytes]) => ({
    name: name!.replaceAll("`", ""),
    kind: kind!,
    rounds: formula(rounds!),
    messages: formula(messages!),
    bytes: formula(bytes!),
  }));

test("the page has a row for every algorithm and no other", () => {
  expect(rows.map(({ name, kind }) => `${name}: ${kind}`).sort()).toEqual(algorithms.map(({ name, kind }) => `${name}: ${kind}`).sort());
});

describe.each(rows)("$name", ({ name, kind, rounds, messages, bytes }) => {
  const algorithm = algorithms.find((candidate) => candidate.name === name)!;

  test.each(Array.from({ length: 15 }, (_, i) => i + 2))("counts agree with the formulas on %i ranks", (worldSize) => {
    const n = worldSize * 2 ** Math.floor(Math.log2(worldSize)) * 3;
    const schedules = Array.from({ length: worldSize }, (_, rank) => algorithm.schedule(placeOf(rank, worldSize, n)));
    const elements = regionElements(algorithm.kind, worldSize, n);
    const S = 4 * (kind === "all-gather" ? elements.output : elements.input);
    for (const schedule of schedules) expect(schedule.rounds.length).toBe(rounds(worldSize, S));
    expect(Math.max(...schedules.map(sentMessages))).toBe(messages(worldSize, S));
    expect(Math.max(...schedules.map((schedule) => 4 * sentElements(schedule)))).toBeCloseTo(bytes(worldSize, S), 6);
  });

  test("every send has its receive, in the same round, of the same size", () => {
    for (const worldSize of [1, 2, 3, 5, 8, 13, 16]) {
      for (const n of [0, 1, worldSize - 1, worldSize + 1, 100]) {
        const schedules = Array.from({ length: worldSize }, (_, rank) => algorithm.schedule(placeOf(rank, worldSize, n)));
        expect(messageEnds(schedules, "send")).toEqual(messageEnds(schedules, "receive"));
      }
    }
  });

  test("one rank sends nothing", () => {
    expect(sentMessages(algorithm.schedule({ ...placeOf(0, 1, 10), to: 0, from: 0 }))).toBe(0);
  });
});

test("chunks that do not divide evenly still add up to the formula over all ranks", () => {
  for (const name of ["ring-all-reduce", "direct-all-reduce"]) {
    const algorithm = algorithms.find((candidate) => candidate.name === name)!;
    for (const worldSize of [2, 3, 7, 16]) {
      const total = Array.from({ length: worldSize }, (_, rank) =>
        sentElements(algorithm.schedule(placeOf(rank, worldSize, 10_007))),
      ).reduce((sum, count) => sum + count, 0);
      expect(total).toBe(2 * (worldSize - 1) * 10_007);
    }
  }
});
