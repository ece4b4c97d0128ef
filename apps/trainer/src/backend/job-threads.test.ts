import { availableParallelism } from "node:os";
import { expect, test } from "vitest";
import { threadsOf } from "./job-threads.ts";

test("a rank has the threads of its job, otherwise its share of the cores, at least one", () => {
  expect(threadsOf({ threads: 3, ranks: 64 })).toBe(3);
  expect(threadsOf({ ranks: 1 })).toBe(availableParallelism());
  expect(threadsOf({ ranks: 2 * availableParallelism() })).toBe(1);
});
