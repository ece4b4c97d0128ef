import { ShapeError } from "../errors.ts";
import { emitOne } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { formatShape } from "../shape.ts";
import { type Pair, type PaddingOption, resolvePadding, resolvePair } from "../window.ts";

export interface Conv2dOptions {
  /** Steps of the window. Default: 1. */
  readonly stride?: number | Pair;
  /** Zeros around the image. Default: "valid". */
  readonly padding?: PaddingOption;
  /** Distance between the taps of the kernel. Default: 1. */
  readonly dilation?: number | Pair;
  /** Split channels into this many independent convolutions. Default: 1. */
  readonly groups?: number;
}

/**
 * Cross-correlate images with kernels: `y[n, i, j, o] = Σ x[n, i·s − p + r·d, j·s − p + c·d, q] · w[r, c, q, o]`.
 *
 * @param x f32, or f16 with sums in f32: [N, H, W, C], e.g. [64, 28, 28, 32].
 * @param w of `x`'s dtype, [kernel height, kernel width, C / groups, O], e.g. [3, 3, 32, 64].
 * @returns [N, H', W', O] with H' = ⌊(H + padding − (height − 1)·dilation − 1) / stride⌋ + 1; with "same", H' = ⌈H / stride⌉.
 * @throws ShapeError when ranks, channels or groups do not fit; ArgumentError for a stride, padding or dilation out of range.
 * Cost: 2·N·H'·W'·O·height·width·C/groups flops.
 */
export const conv2d = (x: Tensor, w: Tensor, options: Conv2dOptions = {}): Tensor => {
  if (x.rank !== 4 || w.rank !== 4) {
    throw new ShapeError(
      "conv2d",
      `takes an image [N, H, W, C] and a weight [height, width, C / groups, O], got ${formatShape(x.shape)} and ${formatShape(w.shape)}; reshape them to 4 dimensions`,
    );
  }
  const stride = resolvePair(options.stride ?? 1, "stride", "conv2d");
  const dilation = resolvePair(options.dilation ?? 1, "dilation", "conv2d");
  const padding = resolvePadding(
    options.padding ?? "valid",
    [x.shape[1]!, x.shape[2]!],
    [w.shape[0]!, w.shape[1]!],
    stride,
    dilation,
    "conv2d",
  );
  return emitOne("conv2d", [x, w], { stride, padding, dilation, groups: options.groups ?? 1 });
};
