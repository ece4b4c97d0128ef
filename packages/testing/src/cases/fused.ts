import {
  absolute,
  add,
  bitwiseAnd,
  cast,
  cumsum,
  divide,
  exp,
  greater,
  logicalAnd,
  maximum,
  minimum,
  multiply,
  NdArray,
  negate,
  shiftRight,
  sin,
  stopGradient,
  subtract,
  where,
} from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, uniformArray } from "../seeded.ts";

export const fusedCases: readonly ConformanceCase[] = [
  {
    op: "fused",
    name: "in place, results that later instructions read",
    // Cumulative sums before and after the program make its operands and results intermediates, whose memory may
    // overlap.
    fn: (a, b) => {
      const [x, y] = [cumsum(a!), cumsum(b!)];
      const m = add(multiply(x, 0.9), y);
      return [m, subtract(x, multiply(m, 0.5)), divide(y, add(absolute(m), 1))].map((result) => cumsum(result));
    },
    inputs: [normalArray([2, 1030], 1), normalArray([2, 1030], 2)],
    tolerance: { absolute: 1e-3, relative: 1e-5 },
  },
  {
    op: "fused",
    name: "in place, a product joined to a later sum",
    fn: (a, b, c) => {
      const [x, y, z] = [cumsum(a!), cumsum(b!), cumsum(c!)];
      const product = multiply(x, y);
      const m = multiply(z, 0.5);
      return [m, add(product, m)].map((result) => cumsum(result));
    },
    inputs: [normalArray([2, 1030], 1), normalArray([2, 1030], 2), normalArray([2, 1030], 3)],
    tolerance: { absolute: 1e-1, relative: 1e-5 },
  },
  {
    op: "fused",
    name: "normalised rows, long",
    fn: (x, m, s, w) => add(multiply(multiply(subtract(x!, m!), s!), w!), 1),
    inputs: [normalArray([3, 1027], 1), normalArray([3, 1], 2), normalArray([3, 1], 3), normalArray([1027], 4)],
    gradient: [1, 2],
  },
  {
    op: "fused",
    name: "normalised rows, short",
    fn: (x, m, s, w) => add(multiply(multiply(subtract(x!, m!), s!), w!), 1),
    inputs: [normalArray([200, 9], 1), normalArray([200, 1], 2), normalArray([200, 1], 3), normalArray([9], 4)],
    gradient: [1, 2, 3],
  },
  {
    op: "fused",
    name: "dtypes mixed",
    fn: (x, flags, bytes) =>
      where(logicalAnd(flags!, greater(x!, 0)), add(cast(bytes!, "f32"), x!), cast(flags!, "f32")),
    inputs: [normalArray([77, 13], 1), normalArray([77, 13], 2, "bool"), normalArray([13], 3, "u8")],
  },
  {
    op: "fused",
    name: "16-bit storage, arithmetic between",
    fn: (x, y) => cast(multiply(cast(x!, "f32"), cast(y!, "f32")), "bf16"),
    inputs: [normalArray([41, 6], 1, "f16"), normalArray([6], 2, "bf16")],
  },
  {
    op: "fused",
    name: "the same result twice, an operand as result",
    fn: (x) => {
      const y = exp(x!);
      return [y, y, negate(y), stopGradient(x!)];
    },
    inputs: [normalArray([1029], 1)],
  },
  {
    op: "fused",
    name: "many live values",
    fn: (x) => {
      const parts = Array.from({ length: 12 }, (_, i) => sin(multiply(x!, i + 1)));
      return parts.reduce((sum, part, i) => add(sum, multiply(part, parts[(5 * i + 3) % 12]!)));
    },
    inputs: [normalArray([1100], 1)],
  },
  {
    op: "fused",
    name: "products added and subtracted",
    fn: (a, b, c) => [
      add(multiply(a!, b!), c!),
      subtract(multiply(a!, b!), multiply(c!, b!)),
      subtract(c!, multiply(a!, 3)),
      add(multiply(2, a!), multiply(c!, 0.5)),
      subtract(multiply(a!, 0.25), c!),
    ],
    inputs: [normalArray([1031], 1), normalArray([1031], 2), normalArray([1031], 3)],
  },
  {
    op: "fused",
    name: "extremes against constants, casts of small whole numbers",
    fn: (x, bits) => [
      ...[0.5, -2, 0, -0, Infinity, -Infinity, NaN].flatMap((bound) => [maximum(x!, bound), minimum(bound, x!)]),
      cast(multiply(x!, 128), "u8"),
      cast(maximum(minimum(multiply(x!, 128), 127.5), -128), "u8"),
      cast(shiftRight(bits!, 8), "f32"),
      cast(shiftRight(bits!, 32), "f32"),
      cast(bitwiseAnd(bits!, 0x7fffff0f), "f32"),
      cast(bitwiseAnd(0x8000000f, bits!), "f32"),
    ],
    inputs: [
      NdArray.from([
        NaN,
        0,
        -0,
        Infinity,
        -Infinity,
        3e9,
        -3e9,
        300,
        2.55,
        1.27,
        -1e-9,
        ...normalArray([1037], 5).toNumbers(),
      ]),
      uniformArray([1048], 0, 2 ** 32, 6, "u32"),
    ],
    tolerance: { absolute: 0, relative: 1e-7 },
  },
];
