import { isHalf } from "../dtype.ts";
import { ShapeError } from "../errors.ts";
import { emitOne, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions, type OptionNames } from "../options.ts";
import { formatShape, formatSpec } from "../shape.ts";
import { type Pair, type PaddingOption, resolvePadding, resolvePair } from "../window.ts";
import { add, cast } from "./elementwise.ts";

export interface Conv2dOptions {
  /** Stride of the window in pixels. Default: 1. */
  readonly stride?: number | Pair;
  /** Zero padding around the image. Default: "valid", no padding. */
  readonly padding?: PaddingOption;
  /** Distance between adjacent kernel taps in pixels. Default: 1. */
  readonly dilation?: number | Pair;
  /** Number of channel groups, which are convolved independently. Default: 1. */
  readonly groups?: number;
  /** Bias added to every pixel, f32 [O]. Default: none. */
  readonly bias?: Tensor;
}

const optionNames: OptionNames<Conv2dOptions> = {
  stride: true,
  padding: true,
  dilation: true,
  groups: true,
  bias: true,
};

/**
 * Returns a convolution plus a bias per output channel. For f16 and bf16 operands, the bias is added to the f32 sums,
 * and the result is then rounded.
 */
export const withBias = (
  op: string,
  x: Tensor,
  bias: Tensor | undefined,
  product: (params: { readonly resultDtype?: "f32" }) => Tensor,
): Tensor => {
  if (bias === undefined) return product({});
  requireOperands(op, [x, bias]);
  const y = product(isHalf(x.dtype) ? { resultDtype: "f32" } : {});
  if (bias.rank !== 1 || bias.shape[0] !== y.shape.at(-1) || bias.dtype !== "f32")
    throw new ShapeError(
      op,
      `bias ${formatSpec(bias)} does not match the result ${formatSpec(y)}; pass one number per output channel, f32[${y.shape.at(-1)}]`,
    );
  return cast(add(y, bias), x.dtype);
};

/**
 * Cross-correlates images with kernels:
 * `y[n, i, j, o] = Σ x[n, i·s − p + r·d, j·s − p + c·d, q] · w[r, c, q, o] + bias[o]`, summed over taps (r, c) and
 * channels q, with stride s, padding p before the image, and dilation d.
 *
 * @param x f32, or f16 or bf16 with sums in f32: [N, H, W, C], e.g. [64, 28, 28, 32].
 * @param w dtype of `x`, [kernel height, kernel width, C / groups, O], e.g. [3, 3, 32, 64].
 * @returns [N, H', W', O] with H' = ⌊(H + padding − (height − 1)·dilation − 1) / stride⌋ + 1; with "same", H' = ⌈H /
 * stride⌉.
 * @throws ShapeError if ranks, channels, groups or the bias do not match; ArgumentError if a stride, padding or
 * dilation is out of range.
 * Cost: 2·N·H'·W'·O·height·width·C/groups flops.
 * @example
 * ```ts
 * const x = NdArray.from(Array(16).fill(1), [1, 4, 4, 1]);
 * const w = NdArray.from(Array(18).fill(1), [3, 3, 1, 2]);
 * const apply = (x: Tensor, w: Tensor) => conv2d(x, w, { padding: 1 });
 * const result = await evaluate(apply, referenceBackend())(x, w);
 * console.log(result.shape); // [1, 4, 4, 2]
 * ```
 */
export const conv2d = (x: Tensor, w: Tensor, options: Conv2dOptions = {}): Tensor => {
  checkOptions("conv2d(x, w)", options, optionNames);
  requireOperands("conv2d", [x, w]);
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
  const params = { stride, padding, dilation, groups: options.groups ?? 1 };
  return withBias("conv2d", x, options.bias, (result) => emitOne("conv2d", [x, w], { ...params, ...result }));
};
