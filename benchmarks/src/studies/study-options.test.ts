import { expect, test } from "vitest";
import type { Run } from "./run.ts";
import type { Study } from "./study.ts";
import { commandOf, parseStudyOptions, resultsPath, type StudyOptions } from "./study-options.ts";

const study: Study<Run> = {
  name: "s",
  title: "S",
  about: "a",
  seeds: 3,
  takes: 2,
  maxSeeds: 4,
  plan: () => [],
  page: () => "",
};
const parse = (...args: string[]): StudyOptions => {
  const options = parseStudyOptions(study, args);
  if (typeof options === "string") throw new Error(options);
  return options;
};

test("seeds and takes are numbers of them, by default the study's, or one of each where only whether it runs is looked at", () => {
  expect(parse()).toMatchObject({ seeds: [1, 2, 3], takes: 2, only: [], quick: false });
  expect(parse("--seeds", "2", "--takes", "5")).toMatchObject({ seeds: [1, 2], takes: 5 });
  expect(parse("--quick")).toMatchObject({ seeds: [1], takes: 1 });
  expect(
    [parse(), parse("--quick"), parse("--seeds", "2", "--only", "a,b"), parse("--all")].map((options) =>
      commandOf(study, options),
    ),
  ).toEqual(["pnpm bench s", "pnpm bench s --quick", "pnpm bench s --seeds 2", "pnpm bench s --all"]);
  expect([resultsPath("s", false), resultsPath("s", true)]).toEqual([
    "docs/benchmarks/s.jsonl",
    "runs/benchmarks/s-quick.jsonl",
  ]);
});

test.each([
  ["--seeds", "1,2"],
  ["--seeds", "0"],
  ["--seeds", "5"],
  ["--takes", "1.5"],
])("%s %s is refused in a line that names it", (name, value) => {
  expect(parseStudyOptions(study, [name, value])).toMatch(new RegExp(`^${name} ${value}: .+; (use|leave)`));
});
