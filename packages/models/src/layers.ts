import {
  add,
  ArgumentError,
  cast,
  conv2d,
  type Conv2dOptions,
  dropout,
  foldIn,
  formatShape,
  matmul,
  multiply,
  normal,
  type Shape,
  type Tensor,
  zeros,
} from "@skein/tensor-core";
import { heNormal } from "./initialisers.ts";
import type { RunContext } from "./model.ts";

/** Draws the initial values of a weight from a key and the weight's shape. */
export type Initialiser = (key: Tensor, shape: Shape) => Tensor;

export interface LayerOptions {
  /** Initializer of the weight. Default: `heNormal`, for layers followed by ReLU. */
  readonly initialise?: Initialiser;
}

/** Weight and bias of a layer. Dense layer: [in, out] and [out]. Convolution: [height, width, in, out] and [out]. */
export interface Affine {
  readonly weight: Tensor;
  readonly bias: Tensor;
}

const initAffine = (
  key: Tensor,
  shape: Shape,
  rank: number,
  form: string,
  { initialise = heNormal }: LayerOptions,
): Affine => {
  if (shape.length !== rank)
    throw new ArgumentError(
      `a weight of shape ${formatShape(shape)} has ${shape.length} sizes, but ${form} needs ${rank}; give each of them`,
    );
  return { weight: initialise(key, shape), bias: zeros([shape.at(-1)!]) };
};

/** Draws the parameters of a dense layer: a weight [in, out] and a bias of zeros. */
export const initDense = (
  key: Tensor,
  shape: readonly [numIn: number, numOut: number],
  options: LayerOptions = {},
): Affine => initAffine(key, shape, 2, "[in, out]", options);

/** Computes `x W + b`: [..., in] to [..., out]. For a layer without a bias use `matmul(x, weight)`. */
export const dense = ({ weight, bias }: Affine, x: Tensor): Tensor => add(matmul(x, weight), bias);

/** Draws the parameters of a convolution: a weight [height, width, in / groups, out] and a bias of zeros. */
export const initConv2d = (
  key: Tensor,
  shape: readonly [height: number, width: number, numIn: number, numOut: number],
  options: LayerOptions = {},
): Affine => initAffine(key, shape, 4, "[height, width, in / groups, out]", options);

/**
 * Applies `conv2d` with the layer's weight and bias: [N, H, W, in] to [N, H', W', out]. For a layer without a bias use
 * `conv2d(x, weight, options)`.
 */
export const applyConv2d = ({ weight, bias }: Affine, x: Tensor, options: Omit<Conv2dOptions, "bias"> = {}): Tensor =>
  conv2d(x, weight, { ...options, bias });

/**
 * Draws an embedding table [entries, width] for `embedding`: normal with a small standard deviation, so that the
 * residual stream of a transformer starts small; 0.02 by default, as in GPT-2. PyTorch's `nn.Embedding` uses 1.
 */
export const initEmbedding = (
  key: Tensor,
  shape: readonly [entries: number, width: number],
  { deviation = 0.02 }: { readonly deviation?: number } = {},
): Tensor => normal(key, shape, { deviation });

/** Converts images to f32: bytes are scaled from 0…255 to 0…1; floats and other integers are not scaled. */
export const pixels = (images: Tensor): Tensor => {
  if (images.dtype === "u8") return multiply(cast(images, "f32"), 1 / 255);
  return images.dtype === "i32" ? cast(images, "f32") : images;
};

/**
 * Applies dropout during training; returns the input unchanged in evaluation. `use` is an integer that is folded into
 * the key. The integer must differ between the layers of a model, so that each layer draws different random values.
 *
 * @throws ArgumentError when training with a rate above 0 and no key, because dropout would then drop the same values
 * in every step.
 */
export const dropWhileTraining = (x: Tensor, rate: number, { train, key }: RunContext, use = 0): Tensor => {
  if (!train || rate === 0) return x;
  if (key === undefined)
    throw new ArgumentError(
      `dropout of rate ${rate} needs a key, but the training step passed none; pass { train: true, key } with a fresh key every step`,
    );
  return dropout(x, rate, foldIn(key, use));
};
