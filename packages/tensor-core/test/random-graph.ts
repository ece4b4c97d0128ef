import fc from "fast-check";
import {
  absolute,
  add,
  allGather,
  allReduce,
  allToAll,
  axisIndex,
  broadcastTo,
  cast,
  concat,
  cumsum,
  defineOperator,
  type DType,
  elementCount,
  full,
  gather,
  type Graph,
  greater,
  identity,
  matmul,
  maximum,
  minimum,
  multiply,
  negate,
  NdArray,
  optimizationBarrier,
  packBits,
  reduceMax,
  reduceMin,
  reduceScatter,
  relu,
  reshape,
  scatterAdd,
  sendReceive,
  slice,
  stopGradient,
  subtract,
  sum,
  tanh,
  type Tensor,
  topK,
  trace,
  transpose,
  where,
} from "../src/index.ts";
import type { ReferenceArray } from "../src/backend.ts";
import { raggedAllGather, raggedAllToAll, reduceToRoot } from "../src/functions/collective.ts";

/** Random choices that determine a graph. fast-check can shrink a recipe. */
export interface GraphRecipe {
  readonly inputs: readonly { readonly dtype: DType; readonly shape: readonly number[] }[];
  readonly steps: readonly { readonly op: number; readonly a: number; readonly b: number; readonly k: number }[];
  readonly outputs: readonly number[];
}

export const worldSize = 2;

const shapes: readonly (readonly number[])[] = [
  [],
  [1],
  [4],
  [6],
  [8],
  [0],
  [2, 3],
  [3, 2],
  [1, 4],
  [4, 1],
  [4, 4],
  [2, 1, 4],
  [12],
  [3, 4],
  [2, 6],
  // Odd sizes. Some exceed the maximum view alignment of 256 bytes, which is 64 f32 elements.
  [5],
  [7],
  [64],
  [65],
  [67],
  [128],
];

/** Generates recipes of graphs with at most `maxSteps` steps over small f32 and i32 tensors. */
export const graphRecipe = (maxSteps = 30): fc.Arbitrary<GraphRecipe> =>
  fc.record({
    inputs: fc.array(
      fc.record({ dtype: fc.constantFrom<DType>("f32", "f32", "f32", "i32"), shape: fc.constantFrom(...shapes) }),
      {
        minLength: 1,
        maxLength: 4,
      },
    ),
    steps: fc.array(fc.record({ op: fc.nat(1000), a: fc.nat(1000), b: fc.nat(1000), k: fc.nat(1000) }), {
      maxLength: maxSteps,
      size: "max",
    }),
    outputs: fc.array(fc.nat(20), { minLength: 1, maxLength: 10, size: "max" }),
  });

// Constants. Small dyadic numbers, so that constant folding in any order is exact in f64.
const numbers = [0, 1, 2, -1, 0.5, 3];

/** Converts `x` to the given shape by slicing or repetition, so that two operands match. */
const fitted = (x: Tensor, shape: readonly number[]): Tensor => {
  const count = elementCount(shape);
  const flat = reshape(x, [elementCount(x.shape)]);
  if (count === 0) return reshape(slice(flat, [0], [0]), shape);
  if (elementCount(x.shape) === 0) return full(shape, 2, x.dtype);
  if (elementCount(x.shape) >= count) return reshape(slice(flat, [0], [count]), shape);
  return broadcastTo(
    reshape(
      slice(flat, [0], [1]),
      shape.map(() => 1),
    ),
    shape,
  );
};

/**
 * Returns a vector without its last 1 to 3 elements. After sizes are rounded up, the result needs as much memory as the
 * vector.
 */
const prefix = (x: Tensor, k: number): Tensor =>
  x.shape[0]! > 1 ? slice(x, [0], [x.shape[0]! - 1 - (k % Math.min(3, x.shape[0]! - 1))]) : x;

/** Returns one of the constants; an integer if `a` has an integer dtype. */
const numberFor = (a: Tensor, k: number): number => {
  const number = numbers[k % numbers.length]!;
  return a.dtype === "f32" ? number : Math.trunc(number);
};

const matched = (a: Tensor, b: Tensor): Tensor => cast(fitted(b, a.shape), a.dtype);
const asF32 = (x: Tensor): Tensor => (x.dtype === "f32" ? x : cast(x, "f32"));
const flat = (x: Tensor): Tensor => reshape(x, [elementCount(x.shape)]);

/** User's operator with a reference and no composition. Returns two results of different dtypes. */
const steps = defineOperator({
  name: "test/steps",
  infer: ([x]) => [x!, { dtype: "i32", shape: x!.shape }],
  reference: ([x]) => [
    x!.data.map((value, i) => value - (x!.data[i - 1] ?? 0)),
    x!.data.map((value, i) => (value > (x!.data[i - 1] ?? 0) ? 1 : 0)),
  ],
});
const exchanged = defineOperator({
  name: "test/exchanged",
  composition: ([a, b]) => [
    subtract(allReduce(a!, "data"), steps([b!])[0]),
    stepped([multiply(b!, 0.5)], { by: 2 })[0],
  ],
});
const stepped = defineOperator({
  name: "test/stepped",
  composition: ([x], { by }: { readonly by: number }) => [add(steps([x!])[0], by)],
});

const countsFrom = (x: Tensor, shape: readonly number[], most: number): Tensor =>
  minimum(maximum(cast(fitted(x, shape), "i32"), full(shape, 0, "i32")), full(shape, most, "i32"));

/**
 * Steps of a graph: each row computes new tensors from two earlier tensors. A row that does not accept an operand
 * returns the operand unchanged.
 */
const rows: readonly ((a: Tensor, b: Tensor, k: number) => readonly Tensor[])[] = [
  (a, b) => [add(a, matched(a, b))],
  (a, b) => [multiply(a, matched(a, b))],
  (a, b) => [subtract(a, matched(a, b))],
  (a, b) => [maximum(a, matched(a, b))],
  (a, _, k) => [multiply(a, numberFor(a, k))],
  (a, _, k) => [add(a, numberFor(a, k))],
  (a) => [relu(asF32(a)), tanh(asF32(a))],
  (a) => [negate(a), absolute(asF32(a))],
  (a, b) => [where(greater(a, matched(a, b)), a, matched(a, b))],
  (a) => [identity(a)],
  (a) => [stopGradient(a)],
  (a, b) => optimizationBarrier(a, b),
  // Computes a value in two ways. Both results are multiples of small powers of two, so their difference is exactly 0.
  (a, b) => {
    const [x, y] = optimizationBarrier(a, matched(a, b));
    return [subtract(add(x!, y!), add(a, matched(a, b)))];
  },
  (a, _, k) => [full(a.shape, numberFor(a, k), a.dtype)],
  (a) => [cast(cast(a, "f16"), "f32")],
  (a) => [cast(a, "i32")],
  (a) => [flat(a)],
  (a) => [reshape(a, [1, ...a.shape])],
  (a) => [elementCount(a.shape) % 2 === 0 ? reshape(a, [2, elementCount(a.shape) / 2]) : a],
  (a) => [transpose(a)],
  (a) => [a.rank >= 2 ? transpose(a, [1, 0, ...a.shape.slice(2).map((_, i) => i + 2)]) : a],
  (a, _, k) => [a.rank < 3 ? broadcastTo(a, [1 + (k % 3), ...a.shape]) : a],
  (a, _, k) => [a.rank > 0 && a.shape[0]! > 1 ? slice(a, [k % a.shape[0]!]) : a],
  (a, _, k) => [a.rank > 1 && a.shape[1]! > 1 ? slice(a, [0, k % 2], [a.shape[0]!], [1, 1 + (k % 2)]) : a],
  (a, b) => [concat([flat(a), cast(flat(b), a.dtype)], { dim: 0 })],
  (a, _, k) => [prefix(flat(a), k)],
  (a, b, k) => {
    // Concatenates a part of a value that stays alive with another value, in both orders.
    const whole = a.rank > 0 ? flat(cumsum(a)) : tanh(flat(asF32(a)));
    const other = cast(flat(b), whole.dtype);
    return [concat(k % 2 === 0 ? [prefix(whole, k), other] : [other, prefix(whole, k)], { dim: 0 }), whole];
  },
  // Two-byte elements, so that views and operands have offsets of odd multiples of two bytes.
  (a, b, k) => [cast(concat([prefix(cast(flat(a), "f16"), k), cast(flat(b), "f16")], { dim: 0 }), "f32")],
  (a, b) => [concat([flat(a), flat(matched(a, b)), flat(a)], { dim: 0 })],
  (a, b) => [a.rank === 2 ? concat([a, matched(a, b)], { dim: 1 }) : a],
  (a, b) => {
    // A gradient bucket that is packed, reduced, scaled and unpacked.
    const [x, y] = [asF32(a), asF32(b)];
    const [m, n] = [elementCount(x.shape), elementCount(y.shape)];
    const bucket = multiply(allReduce(concat([flat(negate(x)), flat(tanh(y))], { dim: 0 }), "data"), 0.5);
    return [reshape(slice(bucket, [0], [m]), x.shape), reshape(slice(bucket, [m], [m + n]), y.shape)];
  },
  (a) => [a.rank > 0 ? sum(a, { dims: [0] }) : a],
  (a) => [a.rank > 1 ? reduceMax(a, { dims: [1] }) : a],
  (a) => (a.rank > 0 ? [sum(asF32(a), { dims: [a.rank - 1] }), reduceMin(asF32(a), { dims: [a.rank - 1] })] : [a]),
  (a) => [a.rank > 0 ? cast(packBits(greater(a, 0)), "i32") : a],
  (a) => [a.rank > 0 ? cumsum(a) : a],
  (a) => [a.rank === 2 ? matmul(asF32(a), transpose(asF32(a))) : a],
  (a) => [a.rank === 2 ? matmul(transpose(asF32(a)), asF32(a)) : a],
  // A product with `resultDtype`.
  (a) => [a.rank === 2 ? matmul(transpose(cast(a, "f16")), cast(a, "f16"), { resultDtype: "f32" }) : a],
  (a) => (a.dtype === "f32" && a.rank === 1 && a.shape[0]! > 1 ? topK(a, 2) : [a]),
  (a, _, k) => [
    a.rank > 0 && a.shape[0]! > 0 && a.dtype === "f32"
      ? scatterAdd(a, full([2], k % a.shape[0]!, "i32"), gather(a, full([2], 0, "i32")))
      : a,
  ],
  (a) => [allReduce(asF32(a), "data")],
  (a) => [allReduce(asF32(a), "data", "max")],
  (a) => [a.rank > 0 && elementCount(a.shape) < 64 ? allGather(a, "data") : a],
  (a) => [a.rank > 0 && a.shape[0]! % worldSize === 0 ? reduceScatter(asF32(a), "data") : a],
  (a) => [a.rank > 0 && a.shape[0]! % worldSize === 0 ? allToAll(a, "data") : a],
  (a, b) => {
    // A ragged collective with two operands and two results. The counts must be valid for any operand.
    if (a.rank === 0 || a.shape[0]! % worldSize !== 0) return [a];
    const { x, rows: received } = raggedAllToAll(a, countsFrom(b, [worldSize], a.shape[0]! / worldSize), "data");
    return [x, received];
  },
  (a, b) => {
    if (a.rank === 0 || elementCount(a.shape) >= 64) return [a];
    const { x, rows: received } = raggedAllGather(a, countsFrom(b, [], a.shape[0]!), "data");
    return [received, x];
  },
  (a) => [reduceToRoot(asF32(a), "data", worldSize - 1)],
  (a) => [sendReceive(a, "data", [[0, 1]])],
  (a) => [add(a, cast(broadcastTo(axisIndex("data"), a.shape), a.dtype))],
  (a) => steps([a]),
  (a, b) => exchanged([asF32(a), matched(asF32(a), b)]),
];

/** Traces the graph of a recipe for `worldSize` ranks along "data". */
export const buildGraph = (recipe: GraphRecipe): Graph =>
  trace(
    (...inputs: Tensor[]) => {
      const pool = [...inputs];
      // Usually picks a recent value, so that long chains are built; sometimes any value.
      const pick = (choice: number): Tensor =>
        pool[pool.length - 1 - (choice % (choice % 3 === 0 ? pool.length : Math.min(pool.length, 5)))]!;
      for (const { op, a, b, k } of recipe.steps) {
        // The first ten rows, which are elementwise, are chosen more often.
        const made = rows[op % 2 === 0 ? (op / 2) % rows.length : (op * 7) % 10]!(pick(a), pick(b), k);
        pool.push(...made.filter((tensor) => elementCount(tensor.shape) <= 256));
      }
      return recipe.outputs.map((choice) => pool[pool.length - 1 - (choice % pool.length)]!);
    },
    recipe.inputs.map(({ dtype, shape }) => NdArray.zeros(dtype, shape)) as unknown as Tensor[],
    { mesh: { data: worldSize } },
  ).graph;

/** Creates small inputs that differ between ranks. Values are multiples of 1/4, so that sums are exact. */
export const inputsFor = (graph: Graph): ReferenceArray[][] =>
  Array.from({ length: worldSize }, (_, rank) =>
    graph.inputs.map((id, index) => {
      const spec = graph.nodes[id]!.specs[0]!;
      const value = (i: number): number => ((i * 7 + index * 5 + rank * 3) % 11) - 5;
      return {
        spec,
        data: Float64Array.from({ length: elementCount(spec.shape) }, (_, i) =>
          spec.dtype === "f32" ? value(i) / 4 : value(i),
        ),
      };
    }),
  );
