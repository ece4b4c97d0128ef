import {
  add,
  conv2d,
  embedding,
  gelu,
  layerNorm,
  matmul,
  mean,
  type NdArray,
  NdArray as Arrays,
  reshape,
  square,
  subtract,
  swapDims,
  tanh,
  tap,
  type Tensor,
} from "@skein/tensor-core";
import { normalArray } from "@skein/testing";

/**
 * Model with a loss that is the mean over the samples of a batch, and with taps on the inputs and outputs of each
 * layer.
 */
export interface TestModel {
  readonly name: string;
  readonly params: Readonly<Record<string, NdArray>>;
  /** Returns a batch of this number of samples. */
  readonly batch: (samples: number, seed: number) => Readonly<Record<string, NdArray>>;
  readonly loss: (params: Readonly<Record<string, Tensor>>, batch: Readonly<Record<string, Tensor>>) => Tensor;
  /** Path of each weight's bias, by path of the weight; undefined for a weight without bias. */
  readonly layers: Readonly<Record<string, string | undefined>>;
  /** Weights without preconditioning, each with a pattern of the expected reason. */
  readonly firstOrder: Readonly<Record<string, RegExp>>;
}

const regression = (y: Tensor, targets: Tensor): Tensor => mean(square(subtract(y, targets)));

/** Applies a layer, and taps (records) its input and its output. */
const layer = (name: string, input: Tensor, apply: (input: Tensor) => Tensor): Tensor =>
  tap(`${name}:gradient`, apply(tap(`${name}:input`, input)));

const tokens = (shape: readonly number[], count: number, seed: number): NdArray =>
  Arrays.from(
    normalArray(shape, seed)
      .toNumbers()
      .map((value) => Math.abs(Math.round(value * 10)) % count),
    shape,
    "i32",
  );

export const testModels: readonly TestModel[] = [
  {
    name: "two dense layers, the second stored transposed, with a residual connection",
    params: {
      w1: normalArray([3, 3], 1),
      b1: normalArray([3], 2),
      w2: normalArray([2, 3], 3),
      b2: normalArray([2], 4),
    },
    batch: (samples, seed) => ({ x: normalArray([samples, 3], seed), y: normalArray([samples, 2], seed + 1) }),
    loss: ({ w1, b1, w2, b2 }, { x, y }) => {
      const h = add(
        x!,
        tanh(
          add(
            layer("w1", x!, (own) => matmul(own, w1!)),
            b1!,
          ),
        ),
      );
      return regression(
        add(
          layer("w2", h, (own) => matmul(own, swapDims(w2!, 0, 1))),
          b2!,
        ),
        y!,
      );
    },
    layers: { w1: "b1", w2: "b2" },
    firstOrder: {},
  },
  {
    name: "convolutions with stride, padding and dilation, a layer norm, and a head",
    params: {
      k1: normalArray([3, 2, 2, 3], 1),
      b1: normalArray([3], 2),
      k2: normalArray([2, 2, 3, 2], 3),
      gain: normalArray([2], 4),
      shift: normalArray([2], 5),
      head: normalArray([12, 2], 6),
    },
    batch: (samples, seed) => ({ x: normalArray([samples, 5, 6, 2], seed), y: normalArray([samples, 2], seed + 1) }),
    loss: ({ k1, b1, k2, gain, shift, head }, { x, y }) => {
      const h = layer("k1", x!, (own) => conv2d(own, k1!, { padding: "same", stride: [1, 2], dilation: [2, 1] }));
      const i = layer("k2", tanh(add(h, b1!)), (own) => conv2d(own, k2!, { stride: 1, dilation: [2, 1] }));
      const normed = layerNorm(i, gain!, shift!);
      const flat = reshape(normed, [normed.shape[0]!, -1]);
      return regression(
        layer("head", flat, (own) => matmul(own, head!)),
        y!,
      );
    },
    layers: { k1: "b1", k2: undefined, head: undefined },
    firstOrder: { gain: /norm/, shift: /not the weight of a layer/ },
  },
  {
    name: "tokens: an embedding, a layer used at each position, a tied pair of projections",
    params: {
      table: normalArray([5, 4], 1),
      up: normalArray([4, 6], 2),
      upBias: normalArray([6], 3),
      down: normalArray([6, 4], 4),
    },
    batch: (samples, seed) => ({
      x: tokens([samples, 3], 5, seed),
      y: normalArray([samples, 3, 4], seed + 1),
    }),
    loss: ({ table, up, upBias, down }, { x, y }) => {
      const rows = layer("table", x!, (own) => embedding(table!, own));
      const h = gelu(
        add(
          layer("up", rows, (own) => matmul(own, up!)),
          upBias!,
        ),
      );
      return regression(
        layer("down", h, (own) => matmul(own, down!)),
        y!,
      );
    },
    layers: { table: undefined, up: "upBias", down: undefined },
    firstOrder: {},
  },
];
