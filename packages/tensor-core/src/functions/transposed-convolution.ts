import { ArgumentError, ShapeError } from "../errors.ts";
import { emitOne, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions, type OptionNames } from "../options.ts";
import { formatShape } from "../shape.ts";
import { type Padding, type Pair, resolvePadding, resolvePair } from "../window.ts";
import { type Conv2dOptions, withBias } from "./convolution.ts";

/**
 * Options of `convTranspose2d`: options of the corresponding `conv2d`. `padding` is cropped from the result, because
 * `conv2d` adds padding to its image.
 */
export interface ConvTranspose2dOptions extends Conv2dOptions {
  /**
   * Number of rows and columns added at the bottom and right of the result; less than the stride. With a stride above
   * 1, `conv2d` maps images of several sizes to one size; this option selects one of these sizes for the result.
   * Default: 0.
   */
  readonly outputPadding?: number | Pair;
}

const optionNames: OptionNames<ConvTranspose2dOptions> = {
  stride: true,
  padding: true,
  dilation: true,
  groups: true,
  bias: true,
  outputPadding: true,
};

const op = "convTranspose2d";

const checkShapes = (x: Tensor, w: Tensor, groups: number): void => {
  const both = `${formatShape(x.shape)} and ${formatShape(w.shape)}`;
  if (x.rank !== 4 || w.rank !== 4)
    throw new ShapeError(
      op,
      `takes an image [N, H, W, C] and a weight [height, width, O / groups, C], got ${both}; reshape them to 4 dimensions`,
    );
  if (x.shape[3] !== w.shape[3])
    throw new ShapeError(
      op,
      `image ${formatShape(x.shape)} and weight ${formatShape(w.shape)} do not fit: the image's ${x.shape[3]} channels must equal the weight's last size ${w.shape[3]}; an image is [N, H, W, C], a weight has the layout of the conv2d, [height, width, O / groups, C]`,
    );
  if (!Number.isInteger(groups) || groups < 1 || x.shape[3]! % groups !== 0)
    throw new ShapeError(
      op,
      `the ${x.shape[3]} channels of image ${formatShape(x.shape)} do not split into ${groups} groups; groups must be a positive whole number that divides them`,
    );
  if (x.shape[1]! < 1 || x.shape[2]! < 1 || w.shape[0]! < 1 || w.shape[1]! < 1)
    throw new ShapeError(
      op,
      `image and weight ${both} lack pixels or taps; each needs at least one row and one column`,
    );
};

/**
 * Transposed convolution: the adjoint of `conv2d` with respect to its image, also called deconvolution or fractionally
 * strided convolution. Each pixel of `x` adds a kernel-sized patch to the result; patches are a stride apart.
 * `⟨conv2d(a, w), x⟩ = ⟨a, convTranspose2d(x, w)⟩` with the same options.
 *
 * @param x f32, or f16 or bf16 with sums in f32: [N, H, W, C], e.g. [64, 7, 7, 32].
 * @param w dtype of `x`: [kernel height, kernel width, O / groups, C], the weight of a `conv2d` that maps O to C
 * channels, e.g. [4, 4, 16, 32].
 * @returns [N, H', W', O] with H' = (H − 1)·stride + (height − 1)·dilation + 1 − padding + outputPadding; with "same",
 * H' = H·stride.
 * @throws ShapeError if ranks, channels, groups or the bias do not match; ArgumentError if a stride, padding, dilation
 * or outputPadding is out of range.
 * Cost: 2·N·H·W·C·height·width·O/groups flops.
 * @example
 * ```ts
 * const x = NdArray.from([1, 2, 3, 4], [1, 2, 2, 1]);
 * const w = NdArray.from([1, 1, 1, 1], [2, 2, 1, 1]);
 * const apply = (x: Tensor, w: Tensor) => convTranspose2d(x, w, { stride: 2 });
 * const result = await evaluate(apply, referenceBackend())(x, w);
 * console.log(result.shape); // [1, 4, 4, 1]
 * ```
 */
export const convTranspose2d = (x: Tensor, w: Tensor, options: ConvTranspose2dOptions = {}): Tensor => {
  checkOptions("convTranspose2d(x, w)", options, optionNames);
  requireOperands(op, [x, w]);
  const groups = options.groups ?? 1;
  checkShapes(x, w, groups);
  const stride = resolvePair(options.stride ?? 1, "stride", op);
  const dilation = resolvePair(options.dilation ?? 1, "dilation", op);
  const extra = resolvePair(options.outputPadding ?? 0, "outputPadding", op, 0);
  const window: Pair = [w.shape[0]!, w.shape[1]!];
  // With "same", the result size determines the padding, as in the corresponding `conv2d`.
  const same: Pair = [x.shape[1]! * stride[0], x.shape[2]! * stride[1]];
  const padding: Padding = resolvePadding(options.padding ?? "valid", same, window, stride, dilation, op);
  const sizeOf = (dim: 0 | 1): number => {
    if (extra[dim] >= stride[dim] || (options.padding === "same" && extra[dim] > 0))
      throw new ArgumentError(
        `${op}: outputPadding [${extra.join(", ")}] is out of range with stride [${stride.join(", ")}]; it must be smaller than the stride, and 0 if padding is "same"`,
      );
    if (options.padding === "same") return same[dim];
    const pixels = x.shape[1 + dim]!;
    const reach = (window[dim] - 1) * dilation[dim] + 1;
    const size = (pixels - 1) * stride[dim] + reach - padding[dim][0] - padding[dim][1] + extra[dim];
    if (size < 1)
      throw new ArgumentError(
        `${op}: padding [${padding[dim].join(", ")}] cuts all ${size + padding[dim][0] + padding[dim][1]} ${dim === 0 ? "rows" : "columns"} off; use less`,
      );
    return size;
  };
  const shape = [x.shape[0]!, sizeOf(0), sizeOf(1), w.shape[2]! * groups];
  const params = { stride, padding, dilation, groups, shape };
  return withBias(op, x, options.bias, (result) => emitOne("conv2d-backward-input", [x, w], { ...params, ...result }));
};
