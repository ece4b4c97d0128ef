import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hostsOf, meshPartition, nearlySquare, runsOf } from "./topology.ts";

test("hosts are in the order of their lowest rank, with ranks in ascending order", () => {
  expect(hostsOf(["b", "a", "b", "c", "a"])).toEqual([[0, 2], [1, 4], [3]]);
  expect(hostsOf([])).toEqual([]);
  fc.assert(
    fc.property(fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 20 }), (names) => {
      const hosts = hostsOf(names);
      expect(hosts.flat().toSorted((a, b) => a - b)).toEqual(names.map((_, rank) => rank));
      for (const host of hosts) expect(new Set(host.map((rank) => names[rank])).size).toBe(1);
      expect(hosts.length).toBe(new Set(names).size);
    }),
  );
});

test("runs are hosts split where ranks are not consecutive", () => {
  expect(
    runsOf(
      [
        [0, 1, 4],
        [2, 3],
      ],
      5,
    ),
  ).toEqual([[0, 1], [2, 3], [4]]);
  expect(
    runsOf(
      [
        [2, 3],
        [1, 0],
      ],
      4,
    ),
  ).toEqual([
    [0, 1],
    [2, 3],
  ]);
});

test("factors a size as nearly square as possible", () => {
  expect([1, 2, 4, 6, 7, 12, 16, 24, 36].map((size) => nearlySquare(size).join("×"))).toEqual(
    ["1×1", "2×1", "2×2", "3×2", "7×1", "4×3", "4×4", "6×4", "6×6"], // prettier-ignore
  );
});

describe("partitions of a mesh", () => {
  test("rows and columns", () => {
    expect(meshPartition({ data: 2, tensor: 4 }, "tensor")).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
    ]);
    expect(meshPartition({ data: 2, tensor: 4 }, "data")).toEqual([
      [0, 4],
      [1, 5],
      [2, 6],
      [3, 7],
    ]);
  });

  test("every rank is in one part of each axis, and two ranks of one part differ only in that axis", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 4 }), (sizes) => {
        const mesh = Object.fromEntries(sizes.map((size, i) => [`axis${i}`, size]));
        const count = sizes.reduce((product, size) => product * size, 1);
        const coordinates = Array.from({ length: count }, (_, rank) => {
          let left = rank;
          return sizes
            .toReversed()
            .map((size) => {
              const coordinate = left % size;
              left = Math.floor(left / size);
              return coordinate;
            })
            .toReversed();
        });
        for (const [i, size] of sizes.entries()) {
          const parts = meshPartition(mesh, `axis${i}`);
          expect(parts.flat().toSorted((a, b) => a - b)).toEqual(coordinates.map((_, rank) => rank));
          for (const part of parts) {
            expect(part.map((rank) => coordinates[rank]![i])).toEqual(
              Array.from({ length: size }, (_, index) => index),
            );
            const others = part.map((rank) => coordinates[rank]!.toSpliced(i, 1).join());
            expect(new Set(others).size).toBe(1);
          }
        }
      }),
    );
  });

  test("rejects an unknown axis and an invalid size", () => {
    expect(() => meshPartition({ data: 2 }, "tensor")).toThrow(/no axis "tensor", only "data"/);
    expect(() => meshPartition({ data: 2, tensor: 0 }, "data")).toThrow(/axis "tensor" of the mesh has size 0/);
  });
});
