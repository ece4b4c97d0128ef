import {
  add,
  conv2d,
  type EmptyState,
  maxPool2d,
  relu,
  reshape,
  scope,
  splitKey,
  type Tensor,
} from "@skein/tensor-core";
import { headNormal } from "./initialisers.ts";
import { type Affine, dense, dropWhileTraining, initConv2d, initDense, pixels } from "./layers.ts";
import { labelledModel, type Model } from "./model.ts";

export interface CnnOptions {
  /** Image size [rows, columns] in pixels. Default: [28, 28]. */
  readonly imageSize?: readonly [number, number];
  /** Number of channels of an image. Default: 1. */
  readonly inputChannels?: number;
  /** Numbers of output channels of the two convolutions. Default: [32, 64]. */
  readonly channels?: readonly [number, number];
  /** Width of the hidden dense layer. Default: 128. */
  readonly hidden?: number;
  /** Number of classes. Default: 10. */
  readonly numClasses?: number;
  /** Dropout rate of the dense layer's activations during training. Default: 0. */
  readonly dropoutRate?: number;
}

/** Parameters of the small convolutional network: two convolutions, two dense layers. */
export interface CnnParams {
  readonly conv1: Affine;
  readonly conv2: Affine;
  readonly dense1: Affine;
  readonly dense2: Affine;
}

/**
 * Convolutional network for small images such as digits: 3×3 convolution and 2×2 max pooling, twice, then two dense
 * layers. Inputs [B, H, W, C], f32 or bytes.
 *
 * Parameters with the defaults: 421,642. Forward flops per 28×28 image: 8.5 million.
 */
export const cnn = (options: CnnOptions = {}): Model<CnnParams, EmptyState> => {
  const {
    imageSize = [28, 28],
    inputChannels = 1,
    channels = [32, 64],
    hidden = 128,
    numClasses = 10,
    dropoutRate = 0,
  } = options;
  const flatSize = Math.floor(imageSize[0] / 4) * Math.floor(imageSize[1] / 4) * channels[1];
  // Pooling precedes bias and ReLU. Bias and ReLU are monotone, so the result is the same, and only a quarter of the
  // values are processed.
  const block = ({ weight, bias }: Affine, x: Tensor): Tensor =>
    relu(add(maxPool2d(conv2d(x, weight, { padding: "same" }), { window: 2 }), bias));
  return labelledModel({
    init: (key) => {
      const [first, second, third, fourth] = splitKey(key, 4);
      return {
        params: {
          conv1: initConv2d(first!, [3, 3, inputChannels, channels[0]]),
          conv2: initConv2d(second!, [3, 3, channels[0], channels[1]]),
          dense1: initDense(third!, [flatSize, hidden]),
          dense2: initDense(fourth!, [hidden, numClasses], { initialise: headNormal }),
        },
        state: {},
      };
    },
    apply: (params, state, images, context) => {
      const x = scope("conv-1", () => block(params.conv1, pixels(images))); // [B, 14, 14, 32]
      const y = scope("conv-2", () => block(params.conv2, x)); // [B, 7, 7, 64]
      const h = scope("dense-1", () => relu(dense(params.dense1, reshape(y, [y.shape[0]!, -1])))); // [B, 128]
      return [scope("dense-2", () => dense(params.dense2, dropWhileTraining(h, dropoutRate, context))), state];
    },
  });
};
