import fc from "fast-check";
import { expect, test } from "vitest";
import { ringAllReduce } from "./algorithms/ring-all-reduce.ts";
import { beginnings, interleave } from "./interleave.ts";

test("slices begin one round apart, with at most `window` in flight", () => {
  expect(beginnings(4, 5, 8)).toEqual([0, 1, 2, 3]);
  expect(beginnings(5, 6, 2)).toEqual([0, 1, 6, 7, 12]);
  const counts = fc.tuple(
    fc.integer({ min: 1, max: 40 }),
    fc.integer({ min: 1, max: 40 }),
    fc.integer({ min: 1, max: 10 }),
  );
  fc.assert(
    fc.property(counts, ([count, rounds, window]) => {
      const begins = beginnings(count, rounds, window);
      for (let round = 0; round < begins.at(-1)! + rounds; round++) {
        const inFlight = begins.filter((begin) => begin <= round && round < begin + rounds).length;
        expect(inFlight).toBeLessThanOrEqual(window);
        expect(inFlight).toBeGreaterThan(0);
      }
    }),
  );
});

test("puts each step of each slice in its round and its own part of every region", () => {
  const slices = [
    {
      offset: 0,
      schedule: {
        algorithm: "a",
        scratchElements: 5,
        rounds: [[], [{ action: "clear", target: { region: "scratch", offset: 1, count: 2 } } as const]],
      },
    },
    {
      offset: 10,
      schedule: {
        algorithm: "a",
        scratchElements: 7,
        rounds: [
          [{ action: "send", peer: 3, source: { region: "input", offset: 2, count: 4 } } as const],
          [{ action: "clear", target: { region: "scratch", offset: 1, count: 2 } } as const],
        ],
      },
    },
  ];
  expect(interleave(slices, 8)).toEqual({
    algorithm: "a",
    scratchElements: 12,
    rounds: [
      [],
      [
        { action: "clear", target: { region: "scratch", offset: 1, count: 2 } },
        { action: "send", peer: 3, source: { region: "input", offset: 12, count: 4 } },
      ],
      [{ action: "clear", target: { region: "scratch", offset: 6, count: 2 } }],
    ],
  });
});

test("one segment leaves the schedule unchanged", () => {
  const parameters = { rank: 1, worldSize: 3, elementCount: 100 };
  expect(ringAllReduce.schedule({ ...parameters, segments: 1 })).toEqual(ringAllReduce.schedule(parameters));
});
