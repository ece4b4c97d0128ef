import {
  bitcast,
  bitwiseAnd,
  bitwiseOr,
  cumsum,
  type DType,
  multiply,
  NdArray,
  packBits,
  greater,
  type Shape,
  shiftRight,
  unpackBits,
  where,
} from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, uniformArray } from "../seeded.ts";

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

const words: readonly DType[] = ["f32", "i32", "u32"];
const hardFloats = NdArray.from([0, -0, 1, -1.5, Infinity, -Infinity, NaN, 3.4e38, -(2 ** -126), 2 ** -149, 1 / 3]);

/** Conformance cases of the operators that pack bools into bits, unpack bits, and reinterpret the bits of numbers. */
export const bitsCases: readonly ConformanceCase[] = [
  ...shapes.flatMap((shape): ConformanceCase[] => [
    { op: "pack-bits", name: `[${shape.join()}]`, fn: (x) => packBits(x!), inputs: [normalArray(shape, 1, "bool")] },
    {
      op: "unpack-bits",
      name: `[${shape.join()}]`,
      fn: (x) => unpackBits(x!, shape.at(-1)!),
      inputs: [uniformArray([...shape.slice(0, -1), Math.ceil(shape.at(-1)! / 32)], 0, 2 ** 32, 2, "u32")],
    },
  ]),
  {
    op: "pack-bits",
    name: "there and back",
    fn: (x) => unpackBits(packBits(greater(x!, 0)), 101),
    inputs: [normalArray([3, 101], 4)],
  },
  {
    op: "pack-bits",
    name: "gradient beside it",
    fn: (x) => multiply(where(unpackBits(packBits(greater(x!, 0)), 37), 1, -1), x!),
    inputs: [normalArray([2, 37], 5)],
    gradient: [0],
  },
  {
    op: "unpack-bits",
    name: "gradient beside it",
    fn: (x, words) => where(unpackBits(words!, 40), x!, multiply(x!, -2)),
    inputs: [normalArray([2, 40], 5), uniformArray([2, 2], 0, 2 ** 32, 6, "u32")],
    gradient: [0],
  },
  ...words.flatMap((from) =>
    words
      .filter((to) => to !== from)
      .flatMap((to): ConformanceCase[] =>
        ([[0], [1], [], [37, 3]] as const).map((shape) => ({
          op: "bitcast",
          name: `${from} to ${to} [${shape.join()}]`,
          fn: (x) => bitcast(x!, to),
          inputs: [
            from === "f32"
              ? normalArray(shape, 3)
              : uniformArray(shape, from === "i32" ? -(2 ** 31) : 0, 2 ** (from === "i32" ? 31 : 32), 3, from),
          ],
          tolerance: { absolute: 0, relative: 0 },
        })),
      ),
  ),
  { op: "bitcast", name: "hard values", fn: (x) => [bitcast(x!, "u32"), bitcast(x!, "i32")], inputs: [hardFloats] },
  {
    op: "bitcast",
    name: "between other operators",
    // Returns magnitudes rounded down to a power of two, and the bits of sign and exponent.
    fn: (x) => {
      const bits = bitcast(multiply(x!, 2), "u32");
      const power = bitcast(bitwiseAnd(bits, 0x7f800000), "f32");
      return [power, shiftRight(bitcast(bits, "i32"), 23), multiply(power, 3), bits];
    },
    inputs: [normalArray([1031], 7)],
    tolerance: { absolute: 0, relative: 0 },
  },
  {
    op: "bitcast",
    name: "alone between operators that keep their memory",
    fn: (x, y) => {
      const [a, b] = [cumsum(x!), cumsum(y!)];
      return [cumsum(bitcast(a, "u32")), cumsum(bitcast(bitwiseOr(b, 1), "f32")), a];
    },
    inputs: [NdArray.from([4, 1, 2]), uniformArray([40], 0, 2 ** 24, 8, "u32")],
  },
  {
    op: "bitcast",
    name: "of another shape, twice",
    fn: (x) => [bitcast(x!, "u32"), bitcast(bitcast(x!, "u32"), "i32"), bitcast(bitcast(x!, "i32"), "f32")],
    inputs: [normalArray([3, 5], 9)],
  },
];
