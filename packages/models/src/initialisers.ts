import { elementCount, normal, type Shape, type Tensor, uniform } from "@skein/tensor-core";

/**
 * Returns the number of inputs per output (fanIn) and the number of outputs per input (fanOut) for a weight shape:
 * dense [in, out] or kernel [height, width, in, out].
 */
export const fans = (shape: Shape): { readonly fanIn: number; readonly fanOut: number } => {
  const [numIn, numOut] = [shape.at(-2) ?? 1, shape.at(-1) ?? 1];
  const taps = elementCount(shape.slice(0, -2));
  return { fanIn: taps * numIn, fanOut: taps * numOut };
};

/**
 * Draws normal weights with variance 2 / fanIn, which preserves the scale of activations through layers with ReLU.
 * Source: He et al. 2015, arXiv 1502.01852, eq. 10.
 */
export const heNormal = (key: Tensor, shape: Shape): Tensor =>
  normal(key, shape, { deviation: Math.sqrt(2 / fans(shape).fanIn) });

/**
 * Draws uniform weights in ±√(6 / (fanIn + fanOut)), which preserves the scale of activations and gradients. Source:
 * Glorot and Bengio 2010, eq. 16.
 */
export const glorotUniform = (key: Tensor, shape: Shape): Tensor => {
  const { fanIn, fanOut } = fans(shape);
  const bound = Math.sqrt(6 / (fanIn + fanOut));
  return uniform(key, shape, { low: -bound, high: bound });
};

/**
 * Draws small normal weights for the last layer, with standard deviation 0.01. All classes are then about equally
 * likely at the start, the first loss is log(classes), and training does not first have to correct confident random
 * predictions. The VGG classifiers in torchvision use the same value.
 */
export const headNormal = (key: Tensor, shape: Shape): Tensor => normal(key, shape, { deviation: 0.01 });
