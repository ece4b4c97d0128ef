import {
  type Affine,
  applyConv2d,
  dense,
  dropWhileTraining,
  initConv2d,
  initDense,
  labelledModel,
  pixels,
} from "@skein/models";
import { maxPool2d, relu, reshape, splitKey, type Tensor } from "@skein/tensor-core";
import type { ModelFactory } from "skein-train";

/** Options that a job may set under `model.options`. */
export interface ModelOptions {
  /** Numbers of output channels of the first and the second convolution. */
  readonly channels?: readonly [number, number];
  /** Width of the hidden dense layer. */
  readonly hidden?: number;
  /** Dropout rate of the hidden dense layer during training, to reduce overfitting. Default: 0. */
  readonly dropout?: number;
}

/** Applies convolution 3×3, ReLU and max pooling 2×2: [batch, rows, columns, in] to [batch, rows/2, columns/2, out]. */
const block = (layer: Affine, x: Tensor): Tensor =>
  maxPool2d(relu(applyConv2d(layer, x, { padding: "same" })), { window: 2 });

/**
 * A small convolutional network for images [rows, columns, channels] of any size.
 *
 * A model consists of two functions of tensors: `init` creates parameters from a random key, and `apply` computes class
 * scores from images. Both functions are called once to trace their operations; the traced operations are compiled
 * together with their gradients. `labelledModel` adds the loss and the metrics of a classifier.
 */
const makeModel: ModelFactory<ModelOptions> = (task, { channels = [16, 32], hidden = 64, dropout = 0 }) => {
  const [rows, columns, colours] = task.inputs.shape as [number, number, number];
  const numFeatures = Math.floor(rows / 4) * Math.floor(columns / 4) * channels[1];
  return labelledModel({
    init: (key) => {
      const [first, second, third, fourth] = splitKey(key, 4) as [Tensor, Tensor, Tensor, Tensor];
      const params = {
        first: initConv2d(first, [3, 3, colours, channels[0]]),
        second: initConv2d(second, [3, 3, channels[0], channels[1]]),
        third: initDense(third, [numFeatures, hidden]),
        fourth: initDense(fourth, [hidden, task.classes!]),
      };
      return { params, state: {} };
    },
    apply: (params, state, images, context) => {
      const x = block(params.second, block(params.first, pixels(images))); // converts bytes to numbers from 0 to 1
      const features = relu(dense(params.third, reshape(x, [x.shape[0]!, numFeatures])));
      return [dense(params.fourth, dropWhileTraining(features, dropout, context)), state];
    },
  });
};
export default makeModel;
