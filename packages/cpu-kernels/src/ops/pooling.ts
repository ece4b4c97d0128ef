import type { Padding, Pair, Shape, KernelNode } from "@skein/tensor-core";

/** Sizes of a pooling in the order in which the exports take them, from the shapes of the image and of the pooled image. */
export const poolingArguments = (x: Shape, y: Shape, params: KernelNode["params"]): number[] => {
  const [[top], [left]] = params["padding"] as Padding;
  return [...x, y[1]!, y[2]!, ...(params["window"] as Pair), ...(params["stride"] as Pair), top, left];
};
