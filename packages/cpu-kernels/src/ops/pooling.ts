import type { Shape } from "@skein/tensor-core";
import type { OperatorParams } from "@skein/tensor-core/backend";

/**
 * Sizes of a pooling in the order in which the exports take them, from the shapes of the image and of the pooled image.
 */
export const poolingArguments = (x: Shape, y: Shape, params: OperatorParams["max-pool2d"]): number[] => {
  const [[top], [left]] = params.padding;
  return [...x, y[1]!, y[2]!, ...params.window, ...params.stride, top, left];
};
