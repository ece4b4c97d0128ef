import { multiply, packBits, greater, type Shape, unpackBits, where } from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";
import { normal, uniform } from "../seeded.ts";

const shapes: readonly Shape[] = [
  [0],
  [1],
  [31],
  [32],
  [33],
  [3, 0],
  [0, 40],
  [5, 4],
  [3, 7],
  [2, 3, 36],
  [7, 48],
  [5, 64],
  [3, 1003],
  [4, 4096],
];

/** Rows of the operators that turn bools into bits and back. */
export const bitsCases: readonly ConformanceCase[] = [
  ...shapes.flatMap((shape): ConformanceCase[] => [
    { op: "pack-bits", name: `[${shape.join()}]`, fn: (x) => packBits(x!), inputs: [normal(shape, 1, "bool")] },
    {
      op: "unpack-bits",
      name: `[${shape.join()}]`,
      fn: (x) => unpackBits(x!, shape.at(-1)!),
      inputs: [uniform([...shape.slice(0, -1), Math.ceil(shape.at(-1)! / 32)], 0, 2 ** 32, 2, "u32")],
    },
  ]),
  { op: "pack-bits", name: "there and back", fn: (x) => unpackBits(packBits(greater(x!, 0)), 101), inputs: [normal([3, 101], 4)] },
  {
    op: "pack-bits",
    name: "gradient beside it",
    fn: (x) => multiply(where(unpackBits(packBits(greater(x!, 0)), 37), 1, -1), x!),
    inputs: [normal([2, 37], 5)],
    gradient: [0],
  },
  {
    op: "unpack-bits",
    name: "gradient beside it",
    fn: (x, words) => where(unpackBits(words!, 40), x!, multiply(x!, -2)),
    inputs: [normal([2, 40], 5), uniform([2, 2], 0, 2 ** 32, 6, "u32")],
    gradient: [0],
  },
];
