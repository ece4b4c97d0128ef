import { expect, test } from "vitest";
import { names } from "./names.ts";
import { noteOf } from "./note.ts";
import { pairings } from "./pairings.ts";

const free = { processors: 2, of: 2 };
const bound = { processors: 1, of: 2, singleCopy: "cma" };

test("a row says how both ran, and what they do not have alike", () => {
  const conditions = new Map([
    ["a", free],
    ["b", bound],
  ]);
  expect(noteOf({ ours: "a", peer: "b" }, conditions, new Map())).toBe(
    "ours not bound; peer bound to 1 of 2 processors, single copy by cma",
  );
  expect(noteOf({ ours: "a", peer: "b", unlike: "a is older" }, conditions, new Map())).toMatch(
    /^a is older; ours not bound; peer bound/,
  );
});

test("who is missing or failed says why, and not how it ran", () => {
  const conditions = new Map([
    ["a", free],
    ["b", bound],
  ]);
  const reasons = new Map([
    ["b", "failed: no such call"],
    ["c", "is not installed"],
  ]);
  expect(noteOf({ ours: "a", peer: "b" }, conditions, reasons)).toBe("ours not bound; b: failed: no such call");
  expect(noteOf({ ours: "a", peer: "c" }, conditions, reasons)).toBe("ours not bound; c: is not installed");
});

test("threads beside processes are named as another kind, and every name says which of both it is", () => {
  const kindOf = (name: string): string | undefined => /threads|processes|MPI/.exec(name)?.[0];
  for (const { ours, peer, unlike } of pairings) {
    expect(kindOf(ours) === "threads" && kindOf(peer) !== "threads", `${ours} beside ${peer}`).toBe(
      unlike?.startsWith("another kind") ?? false,
    );
  }
  for (const name of Object.values(names)) expect(name).toMatch(/\b(threads of|processes)\b/);
});
