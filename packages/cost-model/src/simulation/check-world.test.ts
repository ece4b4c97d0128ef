import { describe, expect, test } from "vitest";
import { allReduce, compute, phase, wait } from "../../test/worlds.ts";
import { simulate, type SimulationOptions } from "./simulate.ts";
import type { Program, SimulatedWorld, SimulatedTask } from "./task.ts";

describe("errors name the invalid part of a world", () => {
  const fine: Program = [compute("c", 1), allReduce("x", "data", [phase(1)]), wait(1)];
  const simulated =
    (programs: readonly Program[], more: Partial<SimulatedWorld> = {}, settings: SimulationOptions = {}) =>
    () =>
      simulate({ programs, groups: { data: [programs.map((_, rank) => rank)] }, ...more }, settings);

  test.each([
    ["no ranks", simulated([]), "the world has 0 programs"],
    ["seconds", simulated([[compute("c", Number.NaN)]]), 'rank 0, task 0 ("c"): seconds is NaN'],
    ["phases", simulated([[allReduce("x", "data", [phase(-1)])]]), 'rank 0, task 0 ("x"): transferSeconds is -1'],
    [
      "later needs",
      simulated([[{ ...compute("c", 1), after: [0] } as SimulatedTask]]),
      "needs task 0, but a task can only need earlier tasks",
    ],
    [
      "needs of another step",
      simulated([[{ ...compute("c", 1), afterPrevious: [7] } as SimulatedTask]]),
      "needs task 7 of the previous step",
    ],
    [
      "a wait for no collective",
      simulated([[compute("c", 1), wait(0)]]),
      "task 1 waits for task 0, which is not an earlier collective",
    ],
    ["a wait before its start", simulated([[wait(1), allReduce("x", "data", [])]]), "task 0 waits for task 1"],
    [
      "a result that nobody waits for",
      simulated([[fine[0]!, fine[1]!, { ...compute("use", 1), after: [1] } as SimulatedTask]]),
      'task 2 ("use") needs collective 1',
    ],
    [
      "a result of the step before that nobody waits for",
      simulated([[{ ...compute("use", 1), afterPrevious: [1] } as SimulatedTask, fine[1]!]]),
      'task 0 ("use") needs collective 1',
    ],
    [
      "a group that is none",
      simulated([fine], { groups: {} }),
      'rank 0 starts "x" along axis "data", but is in no group of this axis',
    ],
    [
      "ranks that are none",
      simulated([fine], { groups: { data: [[0, 1]] } }),
      "contain rank 1, but the world has one rank per program; use ranks 0 to 0",
    ],
    ["ranks that come twice", simulated([fine, fine], { groups: { data: [[0, 1], [1]] } }), "contain rank 1 twice"],
    ["hosts that leave one out", simulated([fine, fine], { hosts: [[0]] }), "hosts do not contain rank 1"],
    [
      "a start that never comes",
      simulated([fine, [fine[0]!]]),
      'rank 1 never starts collective 1 of its group along axis "data", "x" (all-reduce)',
    ],
    [
      "other collectives",
      simulated([fine, [allReduce("x", "data", [phase(1)], { bytes: 8 }), wait(0)]]),
      "all-reduce of 4 bytes over [inter-node] with priority 0 on rank 0, but all-reduce of 8 bytes",
    ],
    ["a lane that is none", simulated([[allReduce("x", "data", [], { priority: -1 })]]), "priority is -1"],
    ["times without end", simulated([[compute("c", 1e308), compute("d", 1e308)]]), "1 steps end after Infinity s"],
    ["steps", simulated([fine], {}, { steps: 0 }), "steps is 0"],
    ["concurrent", simulated([fine], {}, { concurrent: 1.5 }), "concurrent is 1.5"],
    ["penalty", simulated([fine], {}, { contention: { penaltyPerFlow: -2 } }), "penaltyPerFlow is -2"],
    ["seed", simulated([fine], {}, { jitter: { seed: -1 } }), "seed -1"],
  ])("%s", (_, run, message) => expect(run).toThrow(message));

  test("a result of the previous step may be waited for in either step", () => {
    const use = { ...compute("use", 1), afterPrevious: [1] } as SimulatedTask;
    expect(simulated([[use, fine[1]!, wait(1)]])).not.toThrow();
    const waited: Program = [wait(2, true), { ...compute("use", 1), afterPrevious: [2] } as SimulatedTask, fine[1]!];
    expect(simulated([waited])).not.toThrow();
  });

  test("a deadlock is reported in one line with ranks and collectives", () => {
    const groups = { rows: [[0, 1]], columns: [[0, 1]] };
    const [x, y] = [allReduce("x", "rows", [phase(1)]), allReduce("y", "columns", [phase(1)])];
    const [first, second]: [Program, Program] = [
      [x, wait(0), y, wait(2)],
      [y, wait(0), x, wait(2)],
    ];
    const circle = () => simulate({ programs: [first, second], groups });
    expect(circle).toThrow(
      /^deadlock, ranks wait for each other in a cycle: "x" \(collective 1 along axis "rows" of ranks 0, 1 in step 0\), which rank 1 has not started because it waits for "y"/,
    );
    expect(circle).toThrow(
      /"y" .*, which rank 0 has not started because it waits for the first collective of this list; start the collectives/,
    );
    // Collectives started by all ranks that block each other on the ranks' streams.
    const crossed = () =>
      simulate({
        programs: [
          [x, y, wait(0), wait(1)],
          [y, x, wait(0), wait(1)],
        ],
        groups,
      });
    expect(crossed).toThrow(
      /"x" \(collective 1 along axis "rows".*which on rank 1 was started after "y" .*which on rank 0 was started after the first/,
    );
    expect(
      simulate(
        {
          programs: [
            [x, y, wait(0), wait(1)],
            [y, x, wait(0), wait(1)],
          ],
          groups,
        },
        { concurrent: 2 },
      ).stepSeconds,
    ).toBe(2);
  });
});
