import type { Pair, Shape } from "@skein/tensor-core";
import type { OperatorParams } from "@skein/tensor-core/backend";

/** Sizes of a convolution. Pairs are [rows, columns]. */
export interface Geometry {
  readonly batch: number;
  readonly image: Pair;
  readonly channels: number;
  readonly kernel: Pair;
  /** Number of rows and columns of the result. */
  readonly positions: Pair;
  readonly outChannels: number;
  readonly stride: Pair;
  /** Padding above and on the left of the image. The padding below and on the right follows from `positions`. */
  readonly before: Pair;
  readonly dilation: Pair;
  readonly groups: number;
}

/** Computes the sizes of a convolution from the shapes of image, weight and result. */
export const geometryOf = (x: Shape, w: Shape, y: Shape, params: OperatorParams["conv2d"]): Geometry => {
  const [[top], [left]] = params.padding;
  return {
    batch: x[0]!,
    image: [x[1]!, x[2]!],
    channels: x[3]!,
    kernel: [w[0]!, w[1]!],
    positions: [y[1]!, y[2]!],
    outChannels: w[3]!,
    stride: params.stride,
    before: [top, left],
    dilation: params.dilation,
    groups: params.groups,
  };
};

/** Whether every pixel is read exactly once, in order, so that the convolution is a plain matrix product. */
export const isPointwise = ({ kernel, stride, before, image, positions }: Geometry): boolean =>
  [0, 1].every((dim) => kernel[dim] === 1 && stride[dim] === 1 && before[dim] === 0 && image[dim] === positions[dim]);

/** Converts a pointwise convolution to a convolution of single-pixel images, which needs no index computation. */
export const flattenPointwise = (geometry: Geometry): Geometry =>
  isPointwise(geometry)
    ? {
        ...geometry,
        batch: geometry.batch * geometry.image[0] * geometry.image[1],
        image: [1, 1],
        positions: [1, 1],
        dilation: [1, 1],
      }
    : geometry;

/** Whether each input channel is a separate group. */
export const isDepthwise = ({ channels, groups }: Geometry): boolean => groups > 1 && channels === groups;
