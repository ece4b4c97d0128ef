import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { placeBalanced } from "./balanced-broadcast.ts";
import { checkPlacement, type InversePlacement, type InverterRow } from "./inverse-placement.ts";

const size = fc.integer({ min: 1, max: 40 });
const layersIn = fc
  .array(fc.record({ numInputs: size, numOutputs: size }), { minLength: 1, maxLength: 8 })
  .map((sizes) => sizes.map((each, i) => ({ path: `layer-${i}`, ...each })));

const cubic = (n: number): number => 1e-3 * n ** 3;
const rowsOf = ({ layers }: InversePlacement): InverterRow[] =>
  Object.values(layers).flatMap(({ input, gradient }) => [input, gradient]);

describe("placeBalanced", () => {
  const times = fc.record({ startup: fc.nat(20), perElement: fc.nat(20) });

  test("sent factors take at least as long to invert as to send, and the others less", () => {
    fc.assert(
      fc.property(layersIn, times, fc.integer({ min: 2, max: 5 }), (layers, { startup, perElement }, numRanks) => {
        const broadcastSeconds = (n: number): number => startup + perElement * 1e-3 * n ** 2;
        const placement = placeBalanced(layers, numRanks, { inverseSeconds: cubic, broadcastSeconds });
        checkPlacement(
          placement,
          layers.map(({ path }) => path),
          numRanks,
        );
        const sizes = layers.flatMap(({ numInputs, numOutputs }) => [numInputs, numOutputs]);
        rowsOf(placement).forEach((row, i) =>
          expect(row === "everywhere").toBe(cubic(sizes[i]!) < broadcastSeconds(sizes[i]!)),
        );
      }),
    );
  });

  test("slower broadcasts only move factors from owners to all ranks", () => {
    fc.assert(
      fc.property(layersIn, times, times, (layers, base, more) => {
        const placed = (startup: number, perElement: number): InverterRow[] =>
          rowsOf(
            placeBalanced(layers, 4, {
              inverseSeconds: cubic,
              broadcastSeconds: (n) => startup + perElement * 1e-3 * n ** 2,
            }),
          );
        const dear = placed(base.startup + more.startup, base.perElement + more.perElement);
        placed(base.startup, base.perElement).forEach((row, i) => {
          if (row === "everywhere") expect(dear[i]).toBe("everywhere");
        });
      }),
    );
  });

  test("sends nothing on one rank, and rejects invalid times", () => {
    const layers = [{ path: "one", numInputs: 9, numOutputs: 9 }];
    const free = { inverseSeconds: cubic, broadcastSeconds: () => 0 };
    expect(rowsOf(placeBalanced(layers, 1, free))).toEqual(["everywhere", "everywhere"]);
    expect(rowsOf(placeBalanced(layers, 2, free))).toEqual([0, 1]);
    expect(() => placeBalanced(layers, 2, { ...free, inverseSeconds: () => -1 })).toThrow(
      /inverseSeconds: weight 0 is -1/,
    );
    expect(() => placeBalanced(layers, 2, { ...free, broadcastSeconds: () => NaN })).toThrow(/broadcastSeconds.*NaN/);
    expect(() => placeBalanced([], 2, free)).toThrow(/no weights were given/);
    expect(() => placeBalanced(layers, 0, free)).toThrow(/numRanks is 0/);
  });
});
