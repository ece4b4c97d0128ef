import { afterAll, expect, test } from "vitest";
import type { Attack } from "./attack.ts";
import { soundRun } from "./attacked-run.ts";
import { tryCases } from "./count-tries.ts";
import { formatOutcome, runAttack } from "./run-attack.ts";
import { attacks } from "./table.ts";

const sound = soundRun();
afterAll(() => sound.remove());

// Runs a few attempts of an attack, with equal random numbers in each test run. `pnpm test:attack` runs many attempts
// with different random numbers.
const expectUnharmed = async (attack: Attack): Promise<void> => {
  const outcome = await runAttack(attack, attack.fewTries, "few", sound);
  expect(outcome.fallen).toEqual([]);
  expect(Object.values(outcome.counts).reduce((sum, count) => sum + count, 0)).toBe(attack.fewTries);
};
test.each(attacks.filter(({ inFullRun = false }) => !inFullRun))("$name: $what", expectUnharmed);
test.each(attacks.filter(({ inFullRun = false }) => inFullRun))("$name: $what", { tags: "full" }, expectUnharmed);

test("harmful tries are counted and reported", () => {
  expect(formatOutcome(attacks[0]!, { counts: { job: 3, links: 2 }, fallen: ["job, try 1: Error"] })).toBe(
    "hostile-files: 4 of 5 held (job 3, links 2)\n  fell: job, try 1: Error",
  );
});

test("each case is tried once if there are enough tries, otherwise some are drawn, the same for a seed", async () => {
  const cases = Array.from({ length: 50 }, (_, i) => i);
  const triedWith = async (count: number, seed: string): Promise<number[]> => {
    const tried: number[] = [];
    const { counts, fallen } = await tryCases({ count, seed }, cases, (one) => {
      tried.push(one);
      return { counted: one % 2 === 0 ? "even" : "odd", harm: one === 7 ? "seven" : undefined };
    });
    expect(counts["even"] ?? 0).toBe(tried.filter((one) => one % 2 === 0).length);
    expect(fallen).toEqual(tried.flatMap((one, number) => (one === 7 ? [`seven (try ${number})`] : [])));
    return tried;
  };
  expect(await triedWith(1000, "a")).toEqual(cases);
  const drawn = await triedWith(20, "a");
  expect(drawn).toHaveLength(20);
  expect(await triedWith(20, "a")).toEqual(drawn);
  expect(await triedWith(20, "b")).not.toEqual(drawn);
});
