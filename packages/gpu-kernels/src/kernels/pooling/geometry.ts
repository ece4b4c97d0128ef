import type { Pair, Shape } from "@skein/tensor-core";
import type { OperatorParams } from "@skein/tensor-core/backend";

/** Sizes of a pooling operation. Pairs are [rows, columns]. */
export interface PoolingGeometry {
  readonly batch: number;
  readonly image: Pair;
  readonly channels: number;
  readonly positions: Pair;
  readonly window: Pair;
  readonly stride: Pair;
  /** Padding above and on the left of the image. */
  readonly before: Pair;
}

/** Computes the sizes of a pooling operation from the shapes of the image `x` and the pooled image `y`. */
export const poolingGeometryOf = (x: Shape, y: Shape, params: OperatorParams["max-pool2d"]): PoolingGeometry => {
  const [[top], [left]] = params.padding;
  const window = params.window;
  // A dimension with a single window may use the window size as its stride, because then no windows overlap.
  const strideOf = (dim: 0 | 1): number => Math.max(params.stride[dim], y[1 + dim] === 1 ? window[dim] : 1);
  return {
    batch: x[0]!,
    image: [x[1]!, x[2]!],
    channels: x[3]!,
    positions: [y[1]!, y[2]!],
    window,
    stride: [strideOf(0), strideOf(1)],
    before: [top, left],
  };
};

/** Whether each pixel is in at most one window. */
export const isDisjoint = ({ window, stride }: PoolingGeometry): boolean =>
  stride[0] >= window[0] && stride[1] >= window[1];
