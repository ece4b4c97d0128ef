import { elementCount, normal, type Shape, type Tensor, uniform } from "@skein/tensor-core";

/**
 * Values that one output of a weight sums over, and outputs that one input reaches: for dense weights [in, out] and for
 * kernels [height, width, in, out].
 */
export const fans = (shape: Shape): { readonly fanIn: number; readonly fanOut: number } => {
  const [numIn, numOut] = [shape.at(-2) ?? 1, shape.at(-1) ?? 1];
  const taps = elementCount(shape.slice(0, -2));
  return { fanIn: taps * numIn, fanOut: taps * numOut };
};

/**
 * Normal with variance 2 / fanIn: keeps the size of activations through ReLU. Source: He et al. 2015, arXiv 1502.01852,
 * eq. 10.
 */
export const heNormal = (key: Tensor, shape: Shape): Tensor =>
  normal(key, shape, { deviation: Math.sqrt(2 / fans(shape).fanIn) });

/**
 * Uniform in ±√(6 / (fanIn + fanOut)): keeps the size of activations and gradients. Source: Glorot and Bengio 2010,
 * eq. 16.
 */
export const glorotUniform = (key: Tensor, shape: Shape): Tensor => {
  const { fanIn, fanOut } = fans(shape);
  const bound = Math.sqrt(6 / (fanIn + fanOut));
  return uniform(key, shape, { low: -bound, high: bound });
};

/**
 * Small normal weights for the last layer, deviation 0.01: all classes start about equally likely, so the first loss is
 * log(classes), and training need not first unlearn random confidence. Value as for the classifiers of VGG in
 * torchvision.
 */
export const headNormal = (key: Tensor, shape: Shape): Tensor => normal(key, shape, { deviation: 0.01 });
