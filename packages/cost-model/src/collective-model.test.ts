import { algorithmSelector, ethernetLinks, type GroupSelectionOptions, predictedSeconds } from "@skein/collectives";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { collectiveModelOfGroup } from "./group-collective-model.ts";
import { collectiveSeconds, halfOf, lineAt } from "./collective-model.ts";
import { gigabitsPerSecond, kibibytes, mebibytes, microseconds, milliseconds } from "./units.ts";

const pieces = {
  pieces: [
    { fromBytes: 0, startupSeconds: 1, secondsPerByte: 2 },
    { fromBytes: 10, startupSeconds: 7, secondsPerByte: 1 },
  ],
};

test("units convert to seconds and bytes", () => {
  expect([microseconds(3), milliseconds(3), kibibytes(3), mebibytes(3)]).toEqual([3e-6, 3e-3, 3072, 3_145_728]);
  expect(gigabitsPerSecond(10) * 1.25e9).toBeCloseTo(1, 12);
});

test("a collective takes a + b · M of the piece that contains its size", () => {
  expect(collectiveSeconds({ startupSeconds: 2, secondsPerByte: 3 }, 5)).toBe(17);
  expect([0, 9, 10, 11].map((bytes) => collectiveSeconds(pieces, bytes))).toEqual([1, 19, 17, 18]);
  expect(() => lineAt({ pieces: pieces.pieces.slice(1) }, 3)).toThrow("no piece for 3 bytes");
  expect(() => collectiveSeconds({ startupSeconds: 0, secondsPerByte: Number.NaN }, 3)).toThrow("NaN s/byte");
});

test("two halves add up to the whole", () => {
  for (const bytes of [0, 7, 10, 1e6])
    for (const model of [pieces, { startupSeconds: 1e-4, secondsPerByte: 1e-9 }])
      expect(2 * collectiveSeconds(halfOf(model), bytes)).toBe(collectiveSeconds(model, bytes));
});

describe("the model of a group", () => {
  const groups: readonly GroupSelectionOptions[] = [
    { worldSize: 4, sharesMemory: false },
    { worldSize: 16, sharesMemory: false, order: "any" },
    {
      worldSize: 6,
      sharesMemory: false,
      hosts: [
        [0, 1, 2],
        [3, 4, 5],
      ],
      order: "any",
    },
  ];

  test("equals the predicted time of the chosen algorithm: exactly at powers of two, within 5 % in between", () => {
    const sizes = fc.oneof(
      fc.nat(30).map((n) => 2 ** n),
      fc.integer({ min: 1, max: 2 ** 30 }),
    );
    for (const group of groups) {
      const model = collectiveModelOfGroup(group);
      const choose = algorithmSelector(group);
      fc.assert(
        fc.property(sizes, (byteLength) => {
          const { algorithm, segments } = choose("all-reduce", byteLength);
          const { worldSize, hosts } = group;
          const predicted = predictedSeconds(
            algorithm,
            { worldSize, byteLength, segments, ...(hosts && { hosts }) },
            ethernetLinks,
          );
          const error = Math.abs(collectiveSeconds(model, byteLength) / predicted - 1);
          expect(error).toBeLessThan(Number.isInteger(Math.log2(byteLength)) ? 1e-8 : 0.05);
        }),
      );
    }
  });

  test("is 0 for one rank", () => {
    expect(collectiveSeconds(collectiveModelOfGroup({ worldSize: 1, sharesMemory: false }), 1e6)).toBe(0);
  });
});
