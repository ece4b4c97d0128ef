import { expect, test } from "vitest";
import { makeRow } from "./row.ts";
import { shortfalls } from "./table.ts";

const names = { benchmark: "b", unit: "ms", peer: "p", better: "lower", target: 2 } as const;
const taking = (median: number): { median: number; mad: number; n: number } => ({ median, mad: 0, n: 3 });

test("what misses its target or was not measured falls short, and says why", () => {
  const met = makeRow({ ...names, ours: taking(1), theirs: taking(2) });
  const missed = makeRow({ ...names, ours: taking(2), theirs: taking(3) });
  const broken = makeRow({ ...names, theirs: taking(3), note: "b: failed: no such kernel" });
  const free = makeRow({ ...names, target: undefined, theirs: taking(3) });
  expect(shortfalls([met, missed, broken, free])).toEqual([
    "b beside p: 1.50, wanted 2.",
    "b beside p: not measured, wanted 2 (b: failed: no such kernel).",
  ]);
});
