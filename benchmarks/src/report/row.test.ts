import { expect, test } from "vitest";
import { makeRow } from "./row.ts";

const two = { median: 2, mad: 0.1, n: 5 };
const six = { median: 6, mad: 0.2, n: 7 };
const names = { benchmark: "b", unit: "ms", peer: "p" };

test("a ratio above 1 means ours is better, for times and for rates", () => {
  expect(makeRow({ ...names, better: "lower", ours: two, theirs: six }).ratio).toBe(3);
  expect(makeRow({ ...names, better: "higher", ours: six, theirs: two }).ratio).toBe(3);
});

test("a peer that cannot run has no value, no ratio, and its own words", () => {
  const row = makeRow({ ...names, better: "lower", ours: two, note: "cannot run: no such kernel" });
  expect(row).toMatchObject({ ours: 2, peerValue: null, ratio: null, note: "cannot run: no such kernel" });
});
