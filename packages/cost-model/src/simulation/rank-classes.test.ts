import { expect, test } from "vitest";
import { allReduce, compute, phase, wait } from "../../test/worlds.ts";
import { simulate, type SimulationOptions } from "./simulate.ts";
import type { Program, SimulatedWorld, SimulatedTask } from "./task.ts";

test("equivalent ranks are one class; a straggler, another position or random times separate them", () => {
  const program: Program = [compute("c", 1), allReduce("x", "data", [phase(1)]), wait(1)];
  const classesOf = (world: Partial<SimulatedWorld>, settings: SimulationOptions = {}) =>
    simulate(
      {
        programs: Array.from({ length: 8 }, () => program),
        groups: {
          data: [
            [0, 1, 2, 3],
            [4, 5, 6, 7],
          ],
        },
        ...world,
      },
      settings,
    ).symmetry.classes;
  expect(classesOf({})).toBe(1);
  // Programs with equal content are equivalent: different names do not change times.
  expect(
    classesOf({
      programs: Array.from({ length: 8 }, (_, i) => [
        { ...program[0]!, name: `${i}` } as SimulatedTask,
        ...program.slice(1),
      ]),
    }),
  ).toBe(1);
  // Classes: a slower rank, the other ranks of its group, and all other ranks.
  expect(
    classesOf({
      programs: Array.from({ length: 8 }, (_, i) => (i === 5 ? [compute("c", 2), ...program.slice(1)] : program)),
    }),
  ).toBe(3);
  // Hosts of 3, 3 and 2 ranks: two groups share the second host.
  expect(
    classesOf({
      hosts: [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7],
      ],
    }),
  ).toBe(4);
  expect(
    classesOf({
      hosts: [
        [0, 4],
        [1, 5],
        [2, 6],
        [3, 7],
      ],
    }),
  ).toBe(1);
  expect(classesOf({ groups: { data: [[0, 1, 2, 3], [4, 5, 6], [7]] } })).toBe(3);
  expect(classesOf({}, { jitter: { seed: 1, computeVariation: 0.1 } })).toBe(8);
  expect(classesOf({}, { jitter: { seed: 1, stragglers: { share: 1, factor: 2 } } })).toBe(1);
});

test("every rank is simulated if classes are separated one by one from the ends of a chain", () => {
  const message = (axis: string) => allReduce("x", axis, [phase(1)]);
  const inner: Program = [message("odd"), wait(0), message("even"), wait(2)];
  const outer: Program = [message("odd"), wait(0)];
  const chain = (numRanks: number): SimulatedWorld => {
    const pairs = (from: number): number[][] =>
      Array.from({ length: Math.floor((numRanks - from) / 2) }, (_, i) => [from + 2 * i, from + 2 * i + 1]);
    return {
      programs: Array.from({ length: numRanks }, (_, rank) => (rank === 0 || rank === numRanks - 1 ? outer : inner)),
      groups: { odd: pairs(0), even: pairs(1) },
    };
  };
  // Ranks at the same distance from either end of the chain are equivalent.
  expect(simulate(chain(8)).symmetry).toEqual({ classes: 4, ranks: 8 });
  expect(simulate(chain(60)).symmetry).toEqual({ classes: 60, ranks: 60 });
});
