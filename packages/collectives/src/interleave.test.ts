import fc from "fast-check";
import { expect, test } from "vitest";
import { ringAllReduce } from "./algorithms/ring-all-reduce.ts";
import { beginnings, interleave } from "./interleave.ts";

test("slices begin one round apart, and no more than the window are in flight", () => {
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
        const underWay = begins.filter((begin) => begin <= round && round < begin + rounds).length;
        expect(underWay).toBeLessThanOrEqual(window);
        expect(underWay).toBeGreaterThan(0);
      }
    }),
  );
});

test("each step of each slice stands in its round, in its own part of every region", () => {
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

test("one segment is the algorithm itself", () => {
  const place = { rank: 1, worldSize: 3, elementCount: 100 };
  expect(ringAllReduce.schedule({ ...place, segments: 1 })).toEqual(ringAllReduce.schedule(place));
});
