import {
  argsort,
  conv1d,
  conv2d,
  convTranspose1d,
  convTranspose2d,
  crossEntropy,
  crossEntropyPerRow,
  einsum,
  elu,
  flip,
  groupNorm,
  leakyRelu,
  logSumExp,
  NdArray,
  norm,
  onesLike,
  prod,
  reshape,
  roll,
  rotary,
  segmentSum,
  type Shape,
  sort,
  type Tensor,
  tril,
  triu,
  vjp,
} from "@skein/tensor-core";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, uniformArray } from "../seeded.ts";

const row = (
  op: string,
  name: string,
  fn: ConformanceCase["fn"],
  inputs: readonly NdArray[],
  gradient: readonly number[] = inputs.flatMap(({ dtype }, i) => (dtype === "f32" ? [i] : [])),
): ConformanceCase => ({ op, name, fn, inputs, ...(gradient.length > 0 && { gradient }) });

/** Returns values at least 0.1 apart, so that the perturbations of central differences do not change their order. */
const distinct = (shape: Shape, seed: number): NdArray => {
  const order = uniformArray(shape, 0, 1, seed).toNumbers();
  const ranks = order.map((value) => order.filter((other) => other < value).length);
  return NdArray.from(
    ranks.map((rank) => 0.13 * (rank - order.length / 2)),
    shape,
  );
};

const labels = NdArray.from([3, -100, 0, 4, -100, 1], [2, 3], "i32");
const counted = NdArray.from([1, 1, 1, 0, 0, 1], [2, 3], "bool");

const norms: readonly ConformanceCase[] = [
  row("norm", "all entries", (x) => norm(x!), [normalArray([3, 5], 1)]),
  row("norm", "along a dimension", (x) => norm(x!, { dims: 0, keepDims: true }), [normalArray([3, 5], 2)]),
  {
    op: "norm",
    name: "value and gradient at rows of zeros, of nothing and of infinities",
    fn: (x) => {
      const { value, pullback } = vjp((y: Tensor) => norm(y, { dims: 1 }), x!);
      return [value, pullback(onesLike(value)) as Tensor];
    },
    inputs: [NdArray.from([0, 0, 3, 4, 0, -2, Infinity, 1], [4, 2])],
  },
];

const losses: readonly ConformanceCase[] = [
  row("crossEntropy", "ignored labels", (x, l) => crossEntropy(x!, l!, { ignoreIndex: -100 }), [
    normalArray([2, 3, 5], 1),
    labels,
  ]),
  row(
    "crossEntropy",
    "smoothed, ignored labels and a mask",
    (x, l, mask) => crossEntropy(x!, l!, { ignoreIndex: -100, labelSmoothing: 0.3, mask: mask! }),
    [normalArray([2, 3, 5], 2), labels, counted],
  ),
  row("crossEntropyPerRow", "smoothed, large logits", (x, l) => crossEntropyPerRow(x!, l!, { labelSmoothing: 0.1 }), [
    uniformArray([4, 33], 9990, 10010, 3),
    NdArray.from([0, 32, 7, 7], [4], "i32"),
  ]),
  row("logSumExp", "last", (x) => logSumExp(x!, { dims: -1 }), [normalArray([3, 37], 4)]),
  row("logSumExp", "all but the middle, large", (x) => logSumExp(x!, { dims: [0, 2], keepDims: true }), [
    uniformArray([4, 3, 5], 80, 120, 5),
  ]),
];

const activations: readonly ConformanceCase[] = [
  row("leakyRelu", "odd size", (x) => leakyRelu(x!, { slope: 0.2 }), [normalArray([5, 7], 6)]),
  row("elu", "odd size", (x) => elu(x!, { alpha: 1.5 }), [normalArray([5, 7], 7)]),
  {
    ...row("elu", "near zero", (x) => elu(x!), [NdArray.from([-1e-3, -1e-5, -3e-7, -1e-20, -20, -0.4])]),
    tolerance: { absolute: 1e-22, relative: 1e-6 },
  },
];

const images: readonly ConformanceCase[] = [
  row("conv2d", "bias", (x, w, b) => conv2d(x!, w!, { bias: b!, padding: "same" }), [
    normalArray([2, 4, 5, 3], 8),
    normalArray([3, 3, 3, 4], 9),
    normalArray([4], 10),
  ]),
  row(
    "conv1d",
    "stride, dilation, causal padding, groups, bias",
    (x, w, b) => conv1d(x!, w!, { stride: 2, dilation: 2, padding: [4, 0], groups: 2, bias: b! }),
    [normalArray([2, 9, 4], 11), normalArray([3, 2, 6], 12), normalArray([6], 13)],
  ),
  row("conv1d", "as long as before", (x, w) => conv1d(x!, w!, { padding: "same", stride: 3 }), [
    normalArray([1, 8, 3], 14),
    normalArray([4, 3, 2], 15),
  ]),
  row(
    "convTranspose1d",
    "stride and output padding",
    (x, w) => convTranspose1d(x!, w!, { stride: 3, padding: 1, outputPadding: 2 }),
    [normalArray([2, 4, 3], 16), normalArray([4, 2, 3], 17)],
  ),
  row(
    "convTranspose2d",
    "stride 2, groups, bias",
    (x, w, b) =>
      convTranspose2d(x!, w!, {
        stride: 2,
        padding: [
          [1, 1],
          [0, 1],
        ],
        outputPadding: [1, 0],
        groups: 2,
        bias: b!,
      }),
    [normalArray([2, 3, 4, 4], 18), normalArray([3, 3, 3, 4], 19), normalArray([6], 20)],
  ),
  row(
    "convTranspose2d",
    "twice the size, dilated",
    (x, w) => convTranspose2d(x!, w!, { stride: [2, 1], padding: "same", dilation: [1, 2] }),
    [normalArray([1, 3, 4, 2], 21), normalArray([4, 3, 3, 2], 22)],
  ),
  ...([1, 2, 6] as const).map((groups) =>
    row("groupNorm", `${groups} groups`, (x, gamma, beta) => groupNorm(x!, gamma!, beta!, { groups }), [
      normalArray([2, 3, 4, 6], 23),
      normalArray([6], 24),
      normalArray([6], 25),
    ]),
  ),
];

const orders: readonly ConformanceCase[] = [
  row("sort", "last", (x) => sort(x!), [distinct([3, 7], 26)]),
  row("sort", "first, from the greatest", (x) => sort(x!, { dim: 0, descending: true }), [distinct([37, 2], 27)]),
  row(
    "sort",
    "ties, infinities, NaN",
    (x) => sort(x!),
    [NdArray.from([2, 1, NaN, 1, Infinity, -Infinity, 2, NaN, 1, -0, 0])],
    [],
  ),
  row("sort", "nothing", (x) => sort(x!), [NdArray.zeros("f32", [3, 0])], []),
  ...(["f32", "i32", "u32"] as const).flatMap((dtype) => [
    row("argsort", `several tiles, ${dtype}`, (x) => argsort(x!), [normalArray([2, 2050], 50, dtype)], []),
    row(
      "argsort",
      `first, from the greatest, ${dtype}`,
      (x) => argsort(x!, { dim: 0, descending: true }),
      [normalArray([37, 3], 51, dtype)],
      [],
    ),
  ]),
  row("sort", "integers", (x) => sort(x!), [normalArray([3, 40], 52, "i32")]),
  row("segmentSum", "any order, rows outside", (x, ids) => segmentSum(x!, ids!, 5), [
    normalArray([40, 7], 53),
    uniformArray([40], -2, 7, 54, "i32"),
  ]),
  row("segmentSum", "of numbers", (x, ids) => segmentSum(x!, ids!, 3), [
    normalArray([9], 55),
    uniformArray([9], 0, 3, 56, "i32"),
  ]),
  row("segmentSum", "integers", (x, ids) => segmentSum(x!, ids!, 4), [
    normalArray([19, 3], 57, "i32"),
    uniformArray([19], 0, 4, 58, "i32"),
  ]),
  row("segmentSum", "no rows", (x, ids) => segmentSum(x!, ids!, 4), [
    normalArray([0, 3], 59),
    NdArray.zeros("i32", [0]),
  ]),
  row(
    "segmentSum",
    "many rows",
    (x, ids) => segmentSum(x!, ids!, 300),
    [normalArray([1500, 36], 60), uniformArray([1500], -3, 303, 61, "i32")],
    [],
  ),
  row("prod", "all, odd", (x) => prod(x!), [normalArray([3, 5], 28)]),
  row("prod", "middle, one zero and several", (x) => prod(x!, { dims: 1 }), [
    NdArray.from([1, 2, 0, 4, 5, 6, 0, 2, 0.5, 0, 0, 3, 0, 3, 0, 4, 2, -1], [2, 3, 3]),
  ]),
  row("prod", "integers", (x) => prod(x!, { dims: [0, 2], keepDims: true }), [normalArray([3, 2, 4], 29, "i32")]),
  row("prod", "nothing", (x) => prod(x!, { dims: 1 }), [NdArray.zeros("f32", [2, 0])], []),
  ...(["f32", "i32", "u8", "bool"] as const).flatMap((dtype) => [
    row("flip", `two dimensions, ${dtype}`, (x) => flip(x!, { dims: [0, -1] }), [normalArray([3, 4, 5], 30, dtype)]),
    row("roll", `middle, ${dtype}`, (x) => roll(x!, -7, { dim: 1 }), [normalArray([3, 5, 2], 31, dtype)]),
    row("tril", dtype, (x) => tril(x!, { diagonal: 1 }), [normalArray([2, 4, 5], 32, dtype)]),
    row("triu", dtype, (x) => triu(x!, { diagonal: -2 }), [normalArray([2, 5, 4], 33, dtype)]),
  ]),
];

/** Tolerance of rotary embeddings: in f32, a sine has an error of about 6e-8, and an angle up to π an error of 2e-7. */
const rotaryTolerance = { tolerance: { absolute: 3e-6, relative: 1e-6 } };

const rotaries: readonly ConformanceCase[] = [
  {
    ...row("rotary", "positions of each batch entry", (x, at) => rotary(x!, { positions: reshape(at!, [2, 1, 5]) }), [
      normalArray([2, 3, 5, 8], 70),
      uniformArray([2, 5], 0, 4000, 71, "i32"),
    ]),
    ...rotaryTolerance,
  },
  {
    ...row(
      "rotary",
      "positions up to a million, and below 0",
      (x, at) => rotary(x!, { positions: at!, base: 500_000 }),
      [normalArray([2, 7, 10], 72), NdArray.from([0, 1, -1, 999_999, 1_000_000, -1_000_000, 2 ** 31 - 1], [7], "i32")],
    ),
    ...rotaryTolerance,
  },
  {
    ...row("rotary", "interleaved pairs", (x, at) => rotary(x!, { positions: at!, pairs: "interleaved" }), [
      normalArray([2, 5, 6], 73),
      uniformArray([5], 0, 100, 74, "i32"),
    ]),
    ...rotaryTolerance,
  },
  {
    ...row(
      "rotary",
      "scaled, from an offset",
      (x) => rotary(x!, { offset: 7, scaling: { type: "linear", factor: 4 } }),
      [normalArray([3, 4], 75)],
    ),
    ...rotaryTolerance,
  },
  row(
    "rotary",
    "no positions",
    (x, at) => rotary(x!, { positions: at! }),
    [normalArray([2, 0, 4], 76), NdArray.zeros("i32", [0])],
    [],
  ),
];

const sums = (expression: string, ...shapes: readonly Shape[]): ConformanceCase =>
  row(
    "einsum",
    expression,
    (...operands: Tensor[]) => einsum(expression, ...operands),
    shapes.map((shape, i) => normalArray(shape, 34 + i)),
  );

const einsums: readonly ConformanceCase[] = [
  sums("ij,jk->ik", [3, 5], [5, 4]),
  sums("bji,bkj->bik", [2, 5, 3], [2, 4, 5]),
  sums("bthk,bshk->bhts", [2, 3, 2, 4], [2, 5, 2, 4]),
  sums("iji->j", [4, 3, 4]),
  sums("...ij,jk->...ik", [2, 1, 3, 4], [4, 2]),
  sums("...i,...i->...", [3, 1, 5], [2, 5]),
  sums("i,j,ij->", [3], [4], [3, 4]),
  sums("ab,bcd,ce,d->ae", [2, 3], [3, 4, 5], [4, 2], [5]),
];

/**
 * Conformance cases of functions that are composed of operators, named by the function. A composition may be wrong even
 * if its operators are correct.
 */
export const composedCases: readonly ConformanceCase[] = [
  ...losses,
  ...norms,
  ...activations,
  ...images,
  ...orders,
  ...rotaries,
  ...einsums,
];
