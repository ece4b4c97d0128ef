import { ArgumentError, ShapeError } from "../errors.ts";
import { excerpt } from "../excerpt.ts";
import { requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions, type OptionNames } from "../options.ts";
import { formatShape } from "../shape.ts";
import type { Pair } from "../window.ts";
import { conv2d, type Conv2dOptions } from "./convolution.ts";
import { reshape } from "./movement.ts";
import { convTranspose2d, type ConvTranspose2dOptions } from "./transposed-convolution.ts";

export interface Conv1dOptions extends Pick<Conv2dOptions, "groups" | "bias"> {
  /** Stride of the window. Default: 1. */
  readonly stride?: number;
  /**
   * Zero padding of the sequence: "same", "valid" (none), one number for both ends, or `[before, after]`. Default:
   * "valid".
   */
  readonly padding?: "same" | "valid" | number | Pair;
  /** Distance between adjacent kernel taps. Default: 1. */
  readonly dilation?: number;
}

/** Options of `convTranspose1d`: the options of the corresponding `conv1d`, and the output padding. */
export interface ConvTranspose1dOptions extends Conv1dOptions {
  /** Number of positions added at the end of the result; less than the stride. Default: 0. */
  readonly outputPadding?: number;
}

const conv1dNames: OptionNames<Conv1dOptions> = {
  stride: true,
  padding: true,
  dilation: true,
  groups: true,
  bias: true,
};
const transposedNames: OptionNames<ConvTranspose1dOptions> = { ...conv1dNames, outputPadding: true };

/**
 * Returns the options of the equivalent `conv2d` on an image with one row. Options are checked here, so that error
 * messages show the caller's values.
 */
const onOneRow = (
  op: string,
  { stride = 1, padding = "valid", dilation = 1, groups = 1, bias }: Conv1dOptions,
): Conv2dOptions => {
  requireWhole(op, "stride", stride, 1);
  requireWhole(op, "dilation", dilation, 1);
  const options = { stride: [1, stride], dilation: [1, dilation], groups, ...(bias && { bias }) } as const;
  if (padding === "same" || padding === "valid") return { ...options, padding };
  if (typeof padding !== "number" && !Array.isArray(padding))
    throw new ArgumentError(
      `${op}: padding is ${excerpt(padding)}; use "same", "valid", a number of zeros for each end, or [before, after]`,
    );
  const [before, after] = typeof padding === "number" ? [padding, padding] : padding;
  requireWhole(op, "padding before the sequence", before, 0);
  requireWhole(op, "padding after the sequence", after, 0);
  return {
    ...options,
    padding: [
      [0, 0],
      [before, after],
    ],
  };
};

const requireWhole = (op: string, name: string, value: number, least: number): void => {
  if (!Number.isInteger(value) || value < least)
    throw new ArgumentError(`${op}: ${name} is ${excerpt(value)}; use a whole number of at least ${least}`);
};

const asImage = (x: Tensor): Tensor => reshape(x, [x.shape[0]!, 1, x.shape[1]!, x.shape[2]!]);
const asRow = (w: Tensor): Tensor => reshape(w, [1, ...w.shape]);
const asSequence = (y: Tensor): Tensor => reshape(y, [y.shape[0]!, y.shape[2]!, y.shape[3]!]);

/**
 * Checks the shapes of a 1-d convolution before it is computed as a 2-d convolution, so that error messages show the
 * caller's shapes instead of image shapes.
 */
const checkShapes = (op: string, x: Tensor, w: Tensor, weight: string, fits: boolean): void => {
  if (x.rank !== 3 || w.rank !== 3 || !fits)
    throw new ShapeError(
      op,
      `takes a sequence [N, T, C] and a weight ${weight}, got ${formatShape(x.shape)} and ${formatShape(w.shape)}, which do not fit; reshape them to 3 dimensions and the same C`,
    );
};

/**
 * Cross-correlates sequences with kernels: `y[n, t, o] = Σ x[n, t·s − p + r·d, q] · w[r, q, o] + bias[o]`, summed over
 * taps r and channels q, with stride s, padding p before the sequence, and dilation d. Computed as a `conv2d` over one
 * row.
 *
 * @param x f32, or f16 or bf16 with sums in f32: [N, T, C].
 * @param w dtype of `x`, [kernel width, C / groups, O].
 * @returns [N, T', O], T' as in `conv2d`.
 * @throws ShapeError if ranks, channels, groups or the bias do not match; ArgumentError if a stride, padding or
 * dilation is out of range.
 * @example
 * ```ts
 * // Three taps, causal: no output depends on later inputs.
 * const x = NdArray.from([1, 2, 3, 4], [1, 4, 1]);
 * const w = NdArray.from([1, 1, 1], [3, 1, 1]);
 * const apply = (x: Tensor, w: Tensor) => conv1d(x, w, { padding: [2, 0] });
 * const result = await evaluate(apply, referenceBackend())(x, w);
 * console.log(result.toNumbers()); // [1, 3, 6, 9]
 * ```
 */
export const conv1d = (x: Tensor, w: Tensor, options: Conv1dOptions = {}): Tensor => {
  checkOptions("conv1d(x, w)", options, conv1dNames);
  requireOperands("conv1d", [x, w]);
  checkShapes("conv1d", x, w, "[width, C / groups, O]", w.shape[1]! * (options.groups ?? 1) === x.shape[2]);
  return asSequence(conv2d(asImage(x), asRow(w), onOneRow("conv1d", options)));
};

/**
 * Transposed convolution: the adjoint of `conv1d` with respect to its sequence; see `convTranspose2d`.
 *
 * @param x f32, or f16 or bf16 with sums in f32: [N, T, C].
 * @param w dtype of `x`: [kernel width, O / groups, C].
 * @returns [N, T', O] with T' = (T − 1)·stride + (width − 1)·dilation + 1 − padding + outputPadding; with "same", T' =
 * T·stride.
 * @throws the same errors as `convTranspose2d`.
 * @example
 * ```ts
 * const x = NdArray.from([1, 2], [1, 2, 1]);
 * const w = NdArray.from([1, 1], [2, 1, 1]);
 * const apply = (x: Tensor, w: Tensor) => convTranspose1d(x, w, { stride: 2 });
 * const result = await evaluate(apply, referenceBackend())(x, w);
 * console.log(result.toNumbers()); // [1, 1, 2, 2]
 * ```
 */
export const convTranspose1d = (x: Tensor, w: Tensor, options: ConvTranspose1dOptions = {}): Tensor => {
  checkOptions("convTranspose1d(x, w)", options, transposedNames);
  requireOperands("convTranspose1d", [x, w]);
  checkShapes("convTranspose1d", x, w, "[width, O / groups, C]", w.shape[2] === x.shape[2]);
  const { outputPadding = 0, ...others } = options;
  requireWhole("convTranspose1d", "outputPadding", outputPadding, 0);
  const wide: ConvTranspose2dOptions = { ...onOneRow("convTranspose1d", others), outputPadding: [0, outputPadding] };
  return asSequence(convTranspose2d(asImage(x), asRow(w), wide));
};
