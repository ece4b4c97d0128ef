import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { gradientWorkers, placeGreedily } from "./greedy.ts";
import { checkPlacement, gridCoordinates } from "./inverse-placement.ts";

const layersOf = (sizes: readonly (readonly [number, number])[]) =>
  sizes.map(([numInputs, numOutputs], i) => ({ path: `layer-${i}`, numInputs, numOutputs }));

/** Returns the smallest possible maximum load of a rank, found by exhaustive search over all assignments. */
const optimum = (costs: readonly number[], numRanks: number): number => {
  const loads = Array.from({ length: numRanks }, () => 0);
  const best = (at: number): number => {
    if (at === costs.length) return Math.max(...loads);
    let least = Infinity;
    for (let rank = 0; rank < numRanks; rank++) {
      loads[rank]! += costs[at]!;
      least = Math.min(least, best(at + 1));
      loads[rank]! -= costs[at]!;
    }
    return least;
  };
  return best(0);
};

describe("placeGreedily", () => {
  const size = fc.integer({ min: 1, max: 9 });

  test("satisfies Graham's bound over columns, and places every factor once", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(size, size), { minLength: 1, maxLength: 6 }),
        fc.constantFrom([1, 1], [2, 1], [2, 2], [4, 2], [4, 4], [3, 1]),
        fc.boolean(),
        (sizes, [numRanks, workers], isColocated) => {
          const layers = layersOf(sizes);
          const placement = placeGreedily(layers, { numRanks: numRanks!, workers: workers!, isColocated });
          checkPlacement(
            placement,
            layers.map(({ path }) => path),
            numRanks!,
          );
          const costs = sizes.map(([n, m]) => n ** 3 + m ** 3);
          const columns = numRanks! / workers!;
          const loads = Array.from({ length: columns }, (_, column) =>
            costs.reduce((sum, cost, i) => (placement.layers[`layer-${i}`]!.column === column ? sum + cost : sum), 0),
          );
          expect(Math.max(...loads)).toBeLessThanOrEqual((4 / 3 - 1 / (3 * columns)) * optimum(costs, columns) + 1e-9);
          if (isColocated)
            for (const { input, gradient } of Object.values(placement.layers)) expect(input).toBe(gradient);
        },
      ),
      { numRuns: 200 },
    );
  });

  test("splits the two factors of a large layer over the rows, if permitted", () => {
    const layers = layersOf([[8, 8]]);
    expect(placeGreedily(layers, { numRanks: 2, workers: 2, isColocated: false }).layers["layer-0"]).toEqual({
      column: 0,
      input: 0,
      gradient: 1,
    });
  });
});

describe("the grid", () => {
  test("is row-major: for 8 ranks with 2 gradient workers, columns are {0, 4}, {1, 5}, {2, 6}, {3, 7}", () => {
    const places = Array.from({ length: 8 }, (_, rank) => gridCoordinates(rank, 8, 2));
    const columns = [0, 1, 2, 3].map((column) =>
      places.flatMap((place, rank) => (place.column === column ? [rank] : [])),
    );
    expect(columns).toEqual([
      [0, 4],
      [1, 5],
      [2, 6],
      [3, 7],
    ]);
  });

  test("every row meets every column in one rank", () => {
    for (const [numRanks, workers] of [
      [1, 1],
      [4, 1],
      [4, 2],
      [6, 3],
      [8, 8],
    ] as const) {
      const seen = new Set(
        Array.from({ length: numRanks }, (_, rank) => JSON.stringify(gridCoordinates(rank, numRanks, workers))),
      );
      expect(seen.size).toBe(numRanks);
    }
  });

  test("converts a fraction of the ranks to a number of gradient workers that divides them, or rejects it", () => {
    expect([1, 0.5, 0.25, 0].map((fraction) => gradientWorkers(fraction, 4))).toEqual([4, 2, 1, 1]);
    expect(() => gradientWorkers(0.75, 4)).toThrow(/0\.75 of 4 ranks is 3 gradient workers, which do not divide/);
    expect(() => gradientWorkers(0.3, 4)).toThrow(/1\.2/);
    expect(() => gradientWorkers(2, 4)).toThrow(/do not divide/);
  });
});
