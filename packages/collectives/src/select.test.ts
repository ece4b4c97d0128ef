import { expect, test } from "vitest";
import { algorithms } from "./algorithms/table.ts";
import { sentElements } from "./schedule.ts";
import { selectAlgorithm } from "./select.ts";

const messageCostBytes = 1000;

/** α–β time of a schedule in bytes: each round takes one message and as long as its largest one. */
const price = (name: string, worldSize: number, elements: number): number => {
  const algorithm = algorithms.find((candidate) => candidate.name === name)!;
  const schedules = Array.from({ length: worldSize }, (_, rank) => algorithm.schedule({ rank, worldSize, elementCount: elements }));
  return schedules[0]!.rounds.reduce(
    (sum, _, round) =>
      sum +
      messageCostBytes +
      4 * Math.max(...schedules.map((schedule) => sentElements({ ...schedule, rounds: [schedule.rounds[round]!] }))),
    0,
  );
};

test.each([2, 3, 4, 6, 7, 12, 16])("over messages, the chosen all-reduce costs no more than the other on %i ranks", (worldSize) => {
  for (const elements of [16, 1008, 10_080, 1_008_000]) {
    const chosen = selectAlgorithm({ kind: "all-reduce", worldSize, byteLength: 4 * elements, sharesMemory: false, messageCostBytes }).name;
    const prices = Object.fromEntries(
      ["ring-all-reduce", "halving-doubling-all-reduce"].map((name) => [name, price(name, worldSize, elements)]),
    );
    // Chunks that do not divide evenly make a round one element longer than the formula.
    expect(prices[chosen]).toBeLessThanOrEqual(Math.min(...Object.values(prices)) + 8 * worldSize);
  }
});

test("both forms are chosen somewhere, and the direct one in shared memory", () => {
  const name = (byteLength: number, sharesMemory: boolean): string =>
    selectAlgorithm({ kind: "all-reduce", worldSize: 6, byteLength, sharesMemory, messageCostBytes }).name;
  expect([name(64, false), name(2 ** 26, false), name(64, true)]).toEqual([
    "halving-doubling-all-reduce",
    "ring-all-reduce",
    "direct-all-reduce",
  ]);
});
