import { ArgumentError, ShapeError } from "../errors.ts";
import { emitOne, requireOperands } from "../graph/emit.ts";
import { checkOptions, type OptionNames } from "../options.ts";
import type { Tensor } from "../graph/tensor.ts";
import { formatShape } from "../shape.ts";
import { type Padding, type PaddingOption, type Pair, resolvePadding, resolvePair } from "../window.ts";

export interface Pool2dOptions {
  /** Window size in pixels, rows and columns. */
  readonly window: number | Pair;
  /** Stride of the window in pixels. Default: the window size, so that windows do not overlap. */
  readonly stride?: number | Pair;
  /** Padding around the image; smaller than the window on each side. Default: "valid", no padding. */
  readonly padding?: PaddingOption;
}

export interface AvgPool2dOptions extends Pool2dOptions {
  /**
   * Whether to divide by the window size, also at the edges, as PyTorch does by default. If false, divides by the
   * number of window pixels inside the image. Default: true.
   */
  readonly countPadding?: boolean;
}

const poolOptions: OptionNames<Pool2dOptions> = { window: true, stride: true, padding: true };

const resolve = (
  op: string,
  x: Tensor,
  options: Pool2dOptions,
): { window: Pair; stride: Pair; padding: Padding; dilation: Pair } => {
  requireOperands(op, [x]);
  if (x.rank !== 4)
    throw new ShapeError(op, `takes images [N, H, W, C], got ${formatShape(x.shape)}; reshape to 4 dimensions`);
  const window = resolvePair(options.window, "window", op);
  const stride = resolvePair(options.stride ?? options.window, "stride", op);
  const padding = resolvePadding(options.padding ?? "valid", [x.shape[1]!, x.shape[2]!], window, stride, [1, 1], op);
  padding.forEach((sides, dim) => {
    if (Math.max(...sides) >= window[dim]!) {
      throw new ArgumentError(
        `${op}: padding [${sides.join(", ")}] with a window of ${window[dim]} leaves a window without pixels; padding must be smaller than the window`,
      );
    }
  });
  return { window, stride, padding, dilation: [1, 1] };
};

/**
 * Computes the maximum of each window, per channel; padding is ignored. The gradient flows to the first maximum of a
 * window in row-major order, as in PyTorch. NaN is treated as the maximum.
 *
 * @param x f32 [N, H, W, C]. @returns f32 [N, H', W', C], H' = ⌊(H + padding − window) / stride⌋ + 1.
 * @example
 * ```ts
 * const apply = (x: Tensor) => maxPool2d(x, { window: 2 });
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4], [1, 2, 2, 1]));
 * console.log(result.toNumbers()); // [4]
 * ```
 */
export const maxPool2d = (x: Tensor, options: Pool2dOptions): Tensor =>
  emitOne("max-pool2d", [x], resolve("max-pool2d", x, checkOptions("maxPool2d(x)", options, poolOptions)));

/**
 * Computes the mean of each window, per channel. Shapes as in `maxPool2d`.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => avgPool2d(x, { window: 2 });
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4], [1, 2, 2, 1]));
 * console.log(result.toNumbers()); // [2.5]
 * ```
 */
export const avgPool2d = (x: Tensor, options: AvgPool2dOptions): Tensor => {
  const { countPadding = true, ...sliding } = checkOptions("avgPool2d(x)", options, {
    ...poolOptions,
    countPadding: true,
  });
  return emitOne("avg-pool2d", [x], { ...resolve("avg-pool2d", x, sliding), countPadding });
};

/**
 * Computes the mean over all pixels: [N, H, W, C] to [N, C].
 *
 * @example
 * ```ts
 * const apply = globalAvgPool;
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3, 4], [1, 2, 2, 1]));
 * console.log(result.toNumbers()); // [2.5]
 * ```
 */
export const globalAvgPool = (x: Tensor): Tensor => {
  requireOperands("globalAvgPool", [x]);
  const y = avgPool2d(x, { window: [x.shape[1] ?? 1, x.shape[2] ?? 1] });
  return emitOne("reshape", [y], { shape: [y.shape[0]!, y.shape[3]!] });
};
