import {
  cast,
  compact,
  type DType,
  dtypes,
  embedding,
  gather,
  multiply,
  NdArray,
  nonzero,
  permuteRows,
  scatterAdd,
  type Shape,
  type Tensor,
} from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, uniformArray } from "../seeded.ts";

const exact = { absolute: 0, relative: 0 };

const rowsUpTo = (shape: Shape, size: number): NdArray => uniformArray(shape, 0, size, 5, "i32");
const integers = (...values: number[]): NdArray => NdArray.from(values, [values.length], "i32");

const gathers: readonly (readonly [name: string, shape: Shape, indices: Shape, dim: number])[] = [
  ["rows", [7, 5], [4], 0],
  ["rows of one", [7], [9], 0],
  ["more picks than rows", [3, 6], [17], 0],
  ["grid of picks", [5, 3], [2, 3, 2], 0],
  ["middle dimension", [2, 5, 3], [4], 1],
  ["last dimension", [4, 6], [5], -1],
  ["one number", [4, 6], [], 0],
  ["no picks", [4, 6], [0], 0],
];

const scatters: readonly (readonly [name: string, base: Shape, indices: Shape, dim: number])[] = [
  ["rows", [7, 5], [4], 0],
  ["equal rows many times", [3, 6], [40], 0],
  ["grid", [5, 3], [2, 3, 2], 0],
  ["middle dimension", [2, 5, 3], [4], 1],
  ["last dimension", [4, 6], [9], -1],
  ["nothing", [4, 6], [0], 0],
  ["wide rows", [5, 67], [11], 0],
];

const updatesShape = (base: Shape, indices: Shape, dim: number): Shape => {
  const at = dim < 0 ? dim + base.length : dim;
  return [...base.slice(0, at), ...indices, ...base.slice(at + 1)];
};

const summable: readonly DType[] = ["f32", "i32", "u32"];

/** Returns random bools, of which a fraction of about `share` is true. */
const mask = (size: number, share: number): NdArray =>
  NdArray.from(
    uniformArray([size], 0, 1, size)
      .toNumbers()
      .map((value) => (value < share ? 1 : 0)),
    [size],
    "bool",
  );

const masks: readonly (readonly [name: string, size: number, share: number, capacity: number])[] = [
  ["nothing to look at", 0, 1, 3],
  ["no room", 5, 1, 0],
  ["one", 1, 1, 1],
  ["one that does not hold", 1, 0, 2],
  ["odd sizes", 35, 0.5, 35],
  ["more room than elements", 67, 0.6, 100],
  ["too little room", 1000, 0.5, 333],
  ["none", 5000, 0, 10],
  ["all", 5003, 1, 5003],
  ["all, too little room", 9000, 1, 4097],
  ["a few among many", 100_003, 0.001, 300],
  ["many tiles", 70_001, 0.3, 30_000],
  ["room filled within the first tiles", 70_001, 0.3, 1500],
];

/** Returns normal values, about 30 % of which have a magnitude of at least 1, and a few difficult values. */
const hardVector = (size: number): NdArray => {
  const values = normalArray([size], size).toNumbers();
  [-0, 0, -1, 1, -Infinity, 3e38, 1e-40, 0.99999994]
    .slice(0, size)
    .forEach((value, i) => (values[(i * 7919) % size] = value));
  return NdArray.from(values);
};

const compactions: readonly (readonly [name: string, size: number, bound: number, capacity: number])[] = [
  ["nothing to look at", 0, 1, 3],
  ["no room", 5, 1, 0],
  ["one", 1, 0, 1],
  ["odd sizes", 35, 1, 35],
  ["more room than elements", 67, 0.5, 100],
  ["too little room", 1003, 1, 77],
  ["room for as many as a register", 333, 1, 16],
  ["everything but zeros", 5003, 0, 5003],
  ["a negative bound", 100, -1, 100],
  ["a bound that is NaN", 100, NaN, 100],
  ["an infinite bound", 100, Infinity, 100],
  ["a few among many", 100_003, 3, 1000],
  ["many tiles", 70_001, 1, 30_000],
  ["room filled within the first tiles", 70_001, 1, 1500],
];

const compactAll = (x: Tensor, bound: Tensor, capacity: number): Tensor[] => {
  const { values, indices, count, greatest } = compact(x, bound, capacity);
  return [values, indices, count, greatest];
};

export const indexingCases: readonly ConformanceCase[] = [
  ...gathers.map(
    ([name, shape, indices, dim]): ConformanceCase => ({
      op: "gather",
      name,
      fn: (x, i) => gather(x!, i!, { dim }),
      inputs: [normalArray(shape), rowsUpTo(indices, shape.at(dim)!)],
      gradient: [0],
    }),
  ),
  ...dtypes.map(
    (dtype): ConformanceCase => ({
      op: "gather",
      name: `rows outside, ${dtype}`,
      fn: (x, i) => [gather(x!, i!), gather(x!, i!, { dim: 1 }), gather(x!, i!, { dim: 1, outside: "zero" })],
      inputs: [normalArray([5, 3], 1, dtype), integers(4, -1, 0, 5, 2, 2 ** 31 - 1, -(2 ** 31))],
      tolerance: { absolute: 0, relative: 0 },
    }),
  ),
  {
    op: "gather",
    name: "permutation",
    fn: (x, p) => permuteRows(x!, p!, { dim: 1 }),
    inputs: [normalArray([2, 6, 3]), integers(3, 0, 5, 1, 4, 2)],
    gradient: [0],
  },
  {
    op: "gather",
    name: "from an empty table",
    fn: (x, i) => embedding(x!, i!),
    inputs: [normalArray([0, 3]), integers(0, 1)],
  },
  {
    op: "gather",
    name: "rows outside have no gradient",
    fn: (x, i) => gather(x!, i!, { outside: "zero" }),
    inputs: [normalArray([5, 3]), integers(4, -1, 0, 5, 4)],
    gradient: [0],
  },
  ...scatters.flatMap(([name, base, indices, dim]) =>
    summable.map(
      (dtype): ConformanceCase => ({
        op: "scatter-add",
        name: `${name}, ${dtype}`,
        fn: (x, i, updates) => scatterAdd(x!, i!, updates!, { dim }),
        inputs: [
          normalArray(base, 1, dtype),
          rowsUpTo(indices, base.at(dim)!),
          normalArray(updatesShape(base, indices, dim), 2, dtype),
        ],
        ...(dtype === "f32" ? { gradient: [0, 2] } : {}),
      }),
    ),
  ),
  {
    op: "scatter-add",
    name: "rows outside are left out",
    fn: (x, i, updates) => scatterAdd(x!, i!, updates!),
    inputs: [normalArray([5, 3]), integers(4, -1, 0, 5, 4, 2 ** 31 - 1, -(2 ** 31)), normalArray([7, 3], 2)],
    gradient: [0, 2],
  },
  {
    op: "scatter-add",
    name: "many updates of many rows",
    fn: (x, i, updates) => scatterAdd(x!, i!, updates!),
    inputs: [normalArray([700, 32]), uniformArray([1200], -3, 703, 5, "i32"), normalArray([1200, 32], 2)],
  },
  {
    op: "scatter-add",
    name: "many updates of one row",
    fn: (x, i, updates) => scatterAdd(x!, i!, updates!),
    inputs: [normalArray([3, 68]), NdArray.zeros("i32", [700]), normalArray([700, 68], 2)],
    tolerance: { absolute: 1e-4, relative: 1e-5 },
  },
  ...masks.map(
    ([name, size, share, capacity]): ConformanceCase => ({
      op: "nonzero",
      name,
      fn: (x) => {
        const { indices, count } = nonzero(x!, capacity);
        return [indices, count];
      },
      inputs: [mask(size, share)],
    }),
  ),
  {
    op: "nonzero",
    name: "gradient of what it picks",
    fn: (held, x) => {
      const { indices, count } = nonzero(held!, 20);
      return [gather(x!, indices), multiply(gather(x!, indices), cast(count, "f32"))];
    },
    inputs: [mask(50, 0.3), normalArray([50], 3)],
    gradient: [1],
  },
  ...compactions.map(
    ([name, size, bound, capacity]): ConformanceCase => ({
      op: "compact",
      name,
      fn: (x, least) => compactAll(x!, least!, capacity),
      inputs: [hardVector(size), NdArray.scalar(bound)],
      tolerance: exact,
    }),
  ),
  {
    op: "compact",
    name: "a NaN at the end",
    fn: (x, least) => compactAll(x!, least!, 40),
    inputs: [NdArray.from([...normalArray([70], 4).toNumbers(), NaN]), NdArray.scalar(2)],
    tolerance: exact,
  },
  {
    op: "compact",
    name: "gradient of what it picks",
    fn: (x, least) => compact(x!, least!, 20).values,
    inputs: [normalArray([50], 3), NdArray.scalar(0.5)],
    gradient: [0],
    tolerance: exact,
  },
];
