import {
  argmax,
  broadcastTo,
  cast,
  crossEntropyPerRow,
  elementCount,
  equal,
  full,
  logicalAnd,
  reshape,
  sum,
  type Tensor,
  where,
} from "@skein/tensor-core";

/**
 * Evaluation results of a batch: f32 scalars, each a sum over the unmasked rows. The caller adds the sums over batches
 * and ranks. A model may have named sums in addition to the two required sums.
 */
export interface Sums {
  /** Sum of the losses over unmasked rows; in nats for cross-entropy. */
  readonly lossSum: Tensor;
  /** Number of unmasked rows. Exact up to 2²⁴ rows. */
  readonly count: Tensor;
  readonly [name: string]: Tensor;
}

/** Metric: the ratio of two sums that a model returns, computed after both sums are added over the whole evaluation. */
export interface Ratio {
  readonly sum: string;
  /** Name of the sum to divide by; `count` for a mean. */
  readonly per: string;
}

/** Sums over classified rows. To get means, divide by `count` after adding the sums of all batches. */
export interface Metrics extends Sums {
  /** Number of rows whose largest logit belongs to the label, f32 scalar. */
  readonly correct: Tensor;
}

/** Returns the cross-entropy of each row; 0 for rows excluded by `mask`. Labels may have any integer dtype. */
const crossEntropyOf = (logits: Tensor, labels: Tensor, mask?: Tensor): Tensor =>
  crossEntropyPerRow(logits, cast(labels, "i32"), { ...(mask && { mask }) });

/** Broadcasts a mask with one value per sample, bool [B], to the rows of `labels` [B, …]. */
export const rowMask = (mask: Tensor, labels: Tensor): Tensor =>
  broadcastTo(reshape(mask, [...mask.shape, ...labels.shape.slice(mask.rank).map(() => 1)]), labels.shape);

/**
 * Returns the number of unmasked rows, f32 scalar; a constant if there is no mask.
 *
 * @param mask Rows to count, bool, shaped like `rows`. Undefined: all rows.
 */
export const rowCount = ({ shape }: Tensor, mask: Tensor | undefined): Tensor =>
  mask === undefined ? full([], elementCount(shape)) : sum(cast(mask, "f32"));

/**
 * Returns the sum over unmasked rows, f32 scalar. Masked rows do not contribute, even if they contain NaN.
 *
 * @param rows Values to add, [B] or [B, …], of any dtype.
 * @param mask Rows to include, bool [B]. Undefined: all rows.
 */
export const sumOfRows = (rows: Tensor, mask: Tensor | undefined): Tensor => {
  const values = cast(rows, "f32");
  return sum(mask === undefined ? values : where(rowMask(mask, values), values, 0));
};

/**
 * Counts correct predictions and adds the losses of the rows for which `mask` (bool, shaped like `labels`) is true.
 * Masked rows may contain any values, including NaN, and have gradient 0.
 *
 * @param logits Logits of the C classes, f32 [..., C].
 * @param labels Class numbers, integers [...].
 */
export const metricsOf = (logits: Tensor, labels: Tensor, mask?: Tensor): Metrics => {
  const right = equal(argmax(logits), cast(labels, "i32"));
  return {
    correct: sum(cast(mask ? logicalAnd(right, mask) : right, "f32")),
    lossSum: sum(crossEntropyOf(logits, labels, mask)),
    count: rowCount(labels, mask),
  };
};
