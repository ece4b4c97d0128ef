import { expect, test } from "vitest";
import * as functions from "./index.ts";
import { ArgumentError, type Tensor, trace } from "./index.ts";

/** All exported functions without parameter types, as JavaScript programs may call them. */
const loose = functions as unknown as { readonly [name: string]: (...args: unknown[]) => Tensor };

type Call = (x: Tensor, i: Tensor) => unknown;

const tracing = (call: Call) => (): unknown =>
  trace(
    (x: Tensor, i: Tensor) => {
      call(x, i);
      return x;
    },
    [
      { dtype: "f32", shape: [3, 4] },
      { dtype: "i32", shape: [3] },
    ],
  );

const unnamed: readonly (readonly [rightCall: string, Call])[] = [
  ["sum(x, { dims: 1 })", (x) => loose["sum"]!(x, 1)],
  ["mean(x, { dims: [0,1] })", (x) => loose["mean"]!(x, [0, 1])],
  ["variance(x, { dims: -1 })", (x) => loose["variance"]!(x, -1)],
  ["reduceMax(x, { dims: 1 })", (x) => loose["reduceMax"]!(x, 1)],
  ["reduceMin(x, { dims: 1 })", (x) => loose["reduceMin"]!(x, 1)],
  ["any(x, { dims: 1 })", (x) => loose["any"]!(loose["less"]!(x, 0), 1)],
  ["all(x, { dims: 1 })", (x) => loose["all"]!(loose["less"]!(x, 0), 1)],
  ["argmax(x, { dim: 0 })", (x) => loose["argmax"]!(x, 0)],
  ["argmin(x, { dim: 0 })", (x) => loose["argmin"]!(x, 0)],
  ["cumsum(x, { dim: 1 })", (x) => loose["cumsum"]!(x, 1)],
  ["topK(x, k, { sorted: false })", (x) => loose["topK"]!(x, 2, false)],
  ["softmax(x, { dim: -1 })", (x) => loose["softmax"]!(x, -1)],
  ["logSoftmax(x, { dim: 0 })", (x) => loose["logSoftmax"]!(x, 0)],
  ["gather(x, indices, { dim: 1 })", (x, i) => loose["gather"]!(x, i, 1)],
  ["scatterAdd(base, indices, updates, { dim: 0 })", (x, i) => loose["scatterAdd"]!(x, i, x, 0)],
  ["permuteRows(x, permutation, { dim: 0 })", (x, i) => loose["permuteRows"]!(x, i, 0)],
  ["concat(tensors, { dim: 1 })", (x) => loose["concat"]!([x, x], 1)],
  ["stack(tensors, { dim: 1 })", (x) => loose["stack"]!([x, x], 1)],
  ["split(x, parts, { dim: 1 })", (x) => loose["split"]!(x, 2, 1)],
  ["squeeze(x, { dims: 0 })", (x) => loose["squeeze"]!(x, 0)],
  ["expandDims(x, { dims: 0 })", (x) => loose["expandDims"]!(x, 0)],
  ["flatten(x, { first: 1 })", (x) => loose["flatten"]!(x, 1)],
  ["iota(shape, dtype, { dim: 0 })", () => loose["iota"]!([2, 3], "i32", 0)],
];

test.each(unnamed)("rejects a dimension without its name, with the correct call: %s", (rightCall, call) => {
  expect(tracing(call)).toThrow(ArgumentError);
  expect(tracing(call)).toThrow(`write ${rightCall}`);
});

const misnamed: readonly (readonly [message: string, Call])[] = [
  [
    'sum: unknown option "axis"; its options are dims, keepDims, write sum(x, { dims: 0 })',
    (x) => loose["sum"]!(x, { axis: 0 }),
  ],
  [
    'mean: unknown option "dim"; its options are dims, keepDims, write mean(x, { dims: [1] })',
    (x) => loose["mean"]!(x, { dim: [1] }),
  ],
  [
    'softmax: unknown option "dims"; its options are dim, write softmax(x, { dim: 1 })',
    (x) => loose["softmax"]!(x, { dims: 1 }),
  ],
  ["expandDims: dims are missing", (x) => loose["expandDims"]!(x, {})],
];

test.each(misnamed)("rejects an unknown option: %s", (message, call) => {
  expect(tracing(call)).toThrow(message);
});
