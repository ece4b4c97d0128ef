import { exchange, initExchange, topKCompressor, withErrorFeedback } from "@skein/compressors";
import { createCpuBackend } from "@skein/cpu-kernels";
import { cnn, gpt, type LabelledBatch, mlp, type Model, resnet18 } from "@skein/models";
import {
  adamw,
  applyUpdates,
  type Backend,
  evaluate,
  flattenTree,
  leafPaths,
  NdArray,
  randomKey,
  referenceBackend,
  type Tensor,
  valueAndGradWithAux,
} from "@skein/tensor-core";
import { threefryWord } from "@skein/tensor-core/backend";
import { expect, it } from "vitest";

const images = (shape: readonly number[], seed: number): NdArray => {
  const count = shape.reduce((product, size) => product * size, 1);
  return NdArray.from(
    Array.from({ length: count }, (_, i) => threefryWord([seed, 0], i) % 256),
    shape,
    "u8",
  );
};
const labels = (shape: readonly number[], numClasses: number): NdArray => {
  const count = shape.reduce((product, size) => product * size, 1);
  return NdArray.from(
    Array.from({ length: count }, (_, i) => threefryWord([9, 0], i) % numClasses),
    shape,
    "i32",
  );
};

interface Row {
  readonly name: string;
  readonly model: Model;
  readonly inputs: NdArray;
  readonly labels: NdArray;
}

const tokens = { inputs: labels([3, 9], 13), labels: labels([3, 9], 13) };
const size = { vocabulary: 13, contextLength: 9, width: 12, numLayers: 2, numHeads: 3 } as const;
const rows: readonly Row[] = [
  { name: "mlp", model: mlp({ sizes: [35, 17, 9, 5] }), inputs: images([6, 5, 7], 1), labels: labels([6], 5) },
  {
    name: "cnn with dropout",
    model: cnn({ imageSize: [11, 8], inputChannels: 2, channels: [5, 6], hidden: 7, numClasses: 4, dropoutRate: 0.3 }),
    inputs: images([5, 11, 8, 2], 2),
    labels: labels([5], 4),
  },
  {
    name: "resnet18",
    model: resnet18({ channels: [3, 4, 5, 6], numClasses: 4 }),
    inputs: images([4, 9, 8, 3], 3),
    labels: labels([4], 4),
  },
  { name: "gpt", model: gpt(size), ...tokens },
  {
    name: "gpt, its other variants",
    model: gpt({
      ...size,
      positions: "learned",
      norm: "layer",
      activation: "swiglu",
      tiedHead: false,
      dropoutRate: 0.1,
    }),
    ...tokens,
  },
];

/** Computes all results of a first training step, starting from the random key. */
const firstStep = async (
  { model, inputs, labels: targets }: Row,
  backend: Backend,
): Promise<{ leaves: readonly NdArray[]; paths: readonly string[] }> => {
  // A large ε, because with the usual ε Adam's first step is the sign of the gradient, which rounding flips near 0.
  const optimizer = adamw({ learningRate: 0.1, epsilon: 0.1 });
  const compressor = withErrorFeedback(topKCompressor({ density: 0.3 }));
  const step = (key: Tensor, own: LabelledBatch) => {
    const { params, state } = model.init(key);
    const [loss, modelState, gradients] = valueAndGradWithAux(model.loss)(params, state, own, { train: true, key });
    const [mean, residuals] = exchange(gradients, initExchange(params, { compressor }), { axis: "data", compressor });
    const [updates] = optimizer.update(gradients, optimizer.init(params), { params });
    return {
      loss,
      modelState,
      gradients,
      mean,
      residuals,
      params: applyUpdates(params, updates),
      metrics: model.evaluate(params, modelState, own),
    };
  };
  const result = await evaluate(step, backend)(randomKey(7), { inputs, labels: targets });
  return { leaves: flattenTree<NdArray>(result).leaves, paths: leafPaths(result) };
};

it.each(rows)("$name: a training step on the CPU equals the reference", async (row) => {
  const [actual, expected] = [await firstStep(row, await createCpuBackend()), await firstStep(row, referenceBackend())];
  expect(actual.paths).toEqual(expected.paths);
  expected.leaves.forEach((leaf, i) => {
    const values = actual.leaves[i]!.toNumbers();
    leaf.toNumbers().forEach((value, j) => {
      expect(Math.abs(values[j]! - value), `${expected.paths[i]}[${j}]: ${values[j]}, reference ${value}`).toBeLessThan(
        2e-5 + 1e-4 * Math.abs(value),
      );
    });
  });
});
