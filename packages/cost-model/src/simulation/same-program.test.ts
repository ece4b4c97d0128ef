import { describe, expect, test } from "vitest";
import { programNumbers } from "./same-program.ts";
import type { CollectiveTask, Program, SimulatedTask, WaitTask } from "./task.ts";

const compute: SimulatedTask = { kind: "compute", name: "c", seconds: 1 };
const collective: CollectiveTask = {
  kind: "collective",
  name: "x",
  axis: "data",
  collective: "all-reduce",
  bytes: 4,
  phases: [{ stream: "inter-node", startupSeconds: 3, transferSeconds: 1 }],
};
const wait: WaitTask = { kind: "wait", for: 1 };
const base: Program = [compute, collective, wait];

describe("programNumbers", () => {
  test("programs with equal times have one number, regardless of their spans; defaults equal their explicit values", () => {
    const others: Program[] = [
      base,
      [...base],
      [{ ...compute, name: "d", args: { bytes: 4 } }, collective, wait],
      [
        { ...compute, after: [], afterPrevious: [] },
        { ...collective, name: "y", priority: 0, startSeconds: 0 },
        { ...wait, previous: false },
      ],
    ];
    expect(programNumbers(others)).toEqual([0, 0, 0, 0]);
  });

  const phases = (
    startupSeconds: number,
    transferSeconds: number,
    stream: "intra-node" | "inter-node" = "inter-node",
  ) => [{ stream, startupSeconds, transferSeconds }];
  const others: readonly (readonly [string, Program])[] = [
    ["seconds", [{ ...compute, seconds: 2 }, collective, wait]],
    ["a start-up for a transfer", [compute, { ...collective, phases: phases(0, 2) }, wait]],
    ["another start-up", [compute, { ...collective, phases: phases(6, 0) }, wait]],
    ["a stream", [compute, { ...collective, phases: phases(3, 1, "intra-node") }, wait]],
    ["phases", [compute, { ...collective, phases: [...collective.phases, ...collective.phases] }, wait]],
    ["an axis", [compute, { ...collective, axis: "tensor" }, wait]],
    ["a lane", [compute, { ...collective, priority: 1 }, wait]],
    ["a start that takes time", [compute, { ...collective, startSeconds: 1 }, wait]],
    ["needs", [compute, { ...collective, after: [0] }, wait]],
    ["needs of the step before", [compute, { ...collective, afterPrevious: [1] }, wait]],
    ["what is waited for", [collective, collective, wait]],
    ["the step", [compute, collective, { ...wait, previous: true }]],
    ["a kind", [compute, collective, compute]],
    ["a task more", [...base, compute]],
  ];
  test.each(others)("%s separate programs", (_, other) =>
    expect(programNumbers([base, other, base, other])).toEqual([0, 1, 0, 1]),
  );

  test("equal hashes do not make programs equal", () => {
    // The hash mixes in the two words of a number one after another, so a chosen second word can cancel the effect of
    // the first word.
    const [words, prime] = [new Int32Array(2), 0x01000193];
    const seconds = new Float64Array(words.buffer);
    seconds[0] = 1.1;
    const first = seconds[0];
    const low = words[0]!;
    words[0] = low ^ 1;
    words[1]! ^= Math.imul(1 ^ low, prime) ^ Math.imul(1 ^ low ^ 1, prime);
    const programs = [first, seconds[0]].map((value): Program => [{ ...compute, seconds: value }]);
    expect(programNumbers(programs)).toEqual([0, 1]);
    // A start-up time that is lost to rounding.
    const swallowed = [1, 2].map((startup): Program => [{ ...collective, phases: phases(startup, 1e20) }]);
    expect(programNumbers(swallowed)).toEqual([0, 1]);
  });
});
