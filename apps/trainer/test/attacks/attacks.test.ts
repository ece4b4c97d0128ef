import { expect, test } from "vitest";
import { formatOutcome, runAttack } from "./run-attack.ts";
import { attacks } from "./table.ts";

// The same tries in each run; `pnpm test:attack` makes many, and others each time.
test.each(attacks)("$name: $what", async (attack) => {
  const outcome = await runAttack(attack, attack.fewTries, "few");
  expect(outcome.fallen).toEqual([]);
  expect(Object.values(outcome.counts).reduce((sum, count) => sum + count, 0)).toBe(attack.fewTries);
});

test("what fell is counted and told", () => {
  expect(formatOutcome(attacks[0]!, { counts: { job: 3, links: 2 }, fallen: ["job, try 1: Error"] })).toBe(
    "hostile-files: 4 of 5 held (job 3, links 2)\n  fell: job, try 1: Error",
  );
});
