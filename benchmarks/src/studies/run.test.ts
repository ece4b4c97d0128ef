import { expect, test } from "vitest";
import { definitionOf, isSelected, type Run } from "./run.ts";

const run: Run = {
  name: "mnist-cnn/top-k-0.1%/seed-1",
  job: { seed: 1 },
  core: true,
  warmUpSteps: 5,
  minutes: 3,
  expected: { seconds: 9, prefix: "mnist-cnn" },
};

test.each([
  ["mnist-cnn", true],
  ["mnist", true],
  ["top-k", true],
  ["top-k-0.1%/mnist-cnn", true],
  ["mnist-cnn/seed-1", true],
  ["mnist-cnn/seed-2", false],
  ["top", true],
  ["k-0.1%", false],
  ["cnn", false],
])("--only %s means the run: %s", (pattern, isMatch) => {
  expect(isSelected(run, [pattern])).toBe(isMatch);
});

test("a run is meant by no pattern, or by one of several", () => {
  expect(isSelected(run, [])).toBe(true);
  expect(isSelected(run, ["gpt", "mnist"])).toBe(true);
});

test("another job, warm-up, cycle or stages is another definition; another time limit is not", () => {
  const definition = definitionOf(run);
  expect(definitionOf({ ...run, minutes: 9 })).toBe(definition);
  for (const other of [{ job: { seed: 2 } }, { warmUpSteps: 6 }, { files: { a: "b" } }, { cycle: 10 }, { stages: [] }])
    expect(definitionOf({ ...run, ...other })).not.toBe(definition);
});
