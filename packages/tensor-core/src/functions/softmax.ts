import { ArgumentError, ShapeError } from "../errors.ts";
import { emit, emitOne, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions, type OptionNames } from "../options.ts";
import { elementCount, formatSpec, resolveDim, sameShape } from "../shape.ts";
import { add, cast, type DimOption, divide, logicalAnd, multiply, negate, notEqual, where } from "./elementwise.ts";
import { reshape, swapDims } from "./movement.ts";
import { mean, sum } from "./reduce.ts";

/** Applies an operator that works along the last dimension to dimension `dim` instead. */
const emitAlongDim = (op: "softmax" | "log-softmax", x: Tensor, options: DimOption): Tensor => {
  const { dim = -1 } = checkOptions(op === "softmax" ? "softmax(x)" : "logSoftmax(x)", options, { dim: true });
  requireOperands(op, [x]);
  const along = resolveDim(dim, x.rank, op);
  return swapDims(emitOne(op, [swapDims(x, along, -1)]), along, -1);
};

/**
 * Softmax along `dim` (default: the last dimension), f32: `exp(x − max x) / Σ exp(x − max x)`. Entries of −∞ have
 * probability 0; a row with only −∞ gives NaN. Any dimension except the last costs two additional transpositions.
 *
 * @example
 * ```ts
 * const result = await evaluate((x: Tensor) => softmax(x), referenceBackend())(NdArray.from([0, 0]));
 * console.log(result.toNumbers()); // [0.5, 0.5]
 * ```
 */
export const softmax = (x: Tensor, options: DimOption = {}): Tensor => emitAlongDim("softmax", x, options);

/**
 * Logarithm of `softmax` along `dim` (default: the last dimension), f32, without underflow: `x − max x − log Σ exp(x −
 * max x)`.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => logSoftmax(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([0, 0]));
 * console.log(result.toNumbers().map((value) => value.toFixed(2))); // ['-0.69', '-0.69']
 * ```
 */
export const logSoftmax = (x: Tensor, options: DimOption = {}): Tensor => emitAlongDim("log-softmax", x, options);

export interface CrossEntropyOptions {
  /** Whether to include each row in the loss, bool, shaped like the labels. Default: all rows are included. */
  readonly mask?: Tensor;
  /** Label of rows to exclude from the loss. Default: no rows are excluded. */
  readonly ignoreIndex?: number;
  /** Fraction of the target probability, 0 to 1, that is distributed equally over all classes. Default: 0. */
  readonly labelSmoothing?: number;
}

const optionNames: OptionNames<CrossEntropyOptions> = { mask: true, ignoreIndex: true, labelSmoothing: true };

const checkRows = (
  logits: Tensor,
  labels: Tensor,
  { mask, ignoreIndex, labelSmoothing = 0 }: CrossEntropyOptions,
): void => {
  requireOperands("crossEntropy", [logits, labels, ...(mask === undefined ? [] : [mask])]);
  if (!sameShape(logits.shape.slice(0, -1), labels.shape) || logits.rank === 0) {
    throw new ShapeError(
      "cross-entropy",
      `logits ${formatSpec(logits)} need one label per row, but labels are ${formatSpec(labels)}; their shape must be that of the logits without its last dimension`,
    );
  }
  if (mask !== undefined && (!sameShape(mask.shape, labels.shape) || mask.dtype !== "bool"))
    throw new ShapeError(
      "cross-entropy",
      `mask ${formatSpec(mask)} and labels ${formatSpec(labels)} differ; pass a bool for each label`,
    );
  if (ignoreIndex !== undefined && (!Number.isInteger(ignoreIndex) || Math.abs(ignoreIndex) >= 2 ** 31))
    throw new ArgumentError(
      `cross-entropy: ignoreIndex ${ignoreIndex} is not a label; use a whole number, such as PyTorch's default -100`,
    );
  if (!(labelSmoothing >= 0 && labelSmoothing <= 1))
    throw new ArgumentError(
      `cross-entropy: labelSmoothing ${labelSmoothing} is not a share of the target; use a number from 0 to 1, such as 0.1`,
    );
};

/**
 * Returns whether each row is included in the loss, bool, shaped like the labels; undefined if all rows are included.
 */
const countedRows = (labels: Tensor, { mask, ignoreIndex }: CrossEntropyOptions): Tensor | undefined => {
  // For labels of another dtype, the operator throws a more specific error.
  if (ignoreIndex === undefined || labels.dtype !== "i32") return mask;
  const counts = notEqual(labels, ignoreIndex);
  return mask === undefined ? counts : logicalAnd(mask, counts);
};

const lossOfRows = (logits: Tensor, labels: Tensor, labelSmoothing: number): Tensor => {
  const rows = elementCount(labels.shape);
  const [losses] = emit("cross-entropy", [reshape(logits, [rows, logits.shape.at(-1)!]), reshape(labels, [rows])]);
  const onLabel = reshape(losses!, labels.shape);
  if (labelSmoothing === 0) return onLabel;
  // Not computed as `logsumexp − mean(logits)`, because that difference loses most digits for large logits.
  const spread = negate(mean(logSoftmax(logits), { dims: -1 }));
  return add(multiply(onLabel, 1 - labelSmoothing), multiply(spread, labelSmoothing));
};

const countedLosses = (logits: Tensor, labels: Tensor, labelSmoothing: number, counted: Tensor | undefined): Tensor => {
  if (counted === undefined) return lossOfRows(logits, labels, labelSmoothing);
  const chosen = where(reshape(counted, [...counted.shape, 1]), logits, 0);
  return where(counted, lossOfRows(chosen, where(counted, labels, 0), labelSmoothing), 0);
};

/**
 * Computes the cross-entropy of each row, `logsumexp(logits) − logits[label]`, in nats. With label smoothing ε, the
 * loss is `(1 − ε)` times this value plus ε times the mean of this value over all labels.
 *
 * @param logits f32 [..., C].
 * @param labels i32 [...]. If a label of an included row is outside 0 ≤ label < C, the loss and the gradient of the row
 * are NaN, so that non-finite checks detect the error.
 * @param options.mask Excluded rows have loss 0 and gradient 0, even if they contain infinities, NaN, or a label such
 * as −100: their logits are replaced before the loss is computed, because 0 · NaN is NaN. Costs one more pass over the
 * logits, unless the replacement is fused with the kernel that computes the logits.
 * @param options.labelSmoothing If above 0, the log-softmax is computed too, and a row with a logit of −∞ has an
 * infinite loss.
 * @returns f32 [...].
 * @throws ShapeError if logits, labels and mask do not match; ArgumentError if labelSmoothing is outside 0 … 1.
 * @example
 * ```ts
 * const logits = NdArray.from([0, 0], [1, 2]);
 * const labels = NdArray.from([1], [1], "i32");
 * const apply = (logits: Tensor, labels: Tensor) => crossEntropyPerRow(logits, labels, { ignoreIndex: -100 });
 * const result = await evaluate(apply, referenceBackend())(logits, labels);
 * console.log(result.toNumbers().map((value) => value.toFixed(2))); // ['0.69']
 * ```
 */
export const crossEntropyPerRow = (logits: Tensor, labels: Tensor, options: CrossEntropyOptions = {}): Tensor => {
  const { labelSmoothing = 0 } = checkOptions("crossEntropyPerRow(logits, labels)", options, optionNames);
  checkRows(logits, labels, options);
  return countedLosses(logits, labels, labelSmoothing, countedRows(labels, options));
};

/**
 * Computes the mean cross-entropy over the included rows, in nats: the loss of a classifier or a language model.
 * Arguments as in `crossEntropyPerRow`. NaN if all rows are excluded.
 *
 * @returns f32 scalar.
 * @example
 * ```ts
 * const logits = NdArray.from([0, 0], [1, 2]);
 * const labels = NdArray.from([1], [1], "i32");
 * const apply = (logits: Tensor, labels: Tensor) => crossEntropy(logits, labels, { labelSmoothing: 0.1 });
 * const result = await evaluate(apply, referenceBackend())(logits, labels);
 * console.log(result.item().toFixed(3)); // 0.693
 * ```
 */
export const crossEntropy = (logits: Tensor, labels: Tensor, options: CrossEntropyOptions = {}): Tensor => {
  const { labelSmoothing = 0 } = checkOptions("crossEntropy(logits, labels)", options, optionNames);
  checkRows(logits, labels, options);
  const counted = countedRows(labels, options);
  const losses = countedLosses(logits, labels, labelSmoothing, counted);
  return counted === undefined ? mean(losses) : divide(sum(losses), sum(cast(counted, "f32")));
};
