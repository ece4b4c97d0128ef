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
 * Results of an evaluation: f32 scalars, sums over the rows of a batch that count, which are added up over batches and
 * ranks. A model may have named sums in addition to the two required ones.
 */
export interface Sums {
  /** Sum of the losses; in nats for cross-entropy. */
  readonly lossSum: Tensor;
  /** Number of rows that count. Exact up to 2²⁴ rows. */
  readonly count: Tensor;
  readonly [name: string]: Tensor;
}

/** A metric: the ratio of two of a model's sums, each added up over the whole evaluation. */
export interface Ratio {
  readonly sum: string;
  /** Name of the divisor; `count` for a mean. */
  readonly per: string;
}

/** Sums over classified rows; divide by `count` after adding up all batches. */
export interface Metrics extends Sums {
  /** Number of rows with the largest logit at the label, f32 scalar. */
  readonly correct: Tensor;
}

/** Cross-entropy of each row, 0 for rows excluded by `mask`; labels of any integer dtype. */
const crossEntropyOf = (logits: Tensor, labels: Tensor, mask?: Tensor): Tensor =>
  crossEntropyPerRow(logits, cast(labels, "i32"), { ...(mask && { mask }) });

/** Broadcasts a mask per batch entry, bool [B], to the rows of `labels` [B, …]. */
export const rowMask = (mask: Tensor, labels: Tensor): Tensor =>
  broadcastTo(reshape(mask, [...mask.shape, ...labels.shape.slice(mask.rank).map(() => 1)]), labels.shape);

/**
 * Number of rows that count, f32 scalar; a constant if there is no mask.
 *
 * @param mask bool, shaped like `rows`. Undefined: all rows count.
 */
export const rowCount = ({ shape }: Tensor, mask: Tensor | undefined): Tensor =>
  mask === undefined ? full([], elementCount(shape)) : sum(cast(mask, "f32"));

/**
 * Sum over unmasked rows, f32 scalar. Masked rows do not contribute, even if they hold NaN.
 *
 * @param rows [B] or [B, …] of any dtype. @param mask bool [B]. Undefined: all rows count.
 */
export const sumOfRows = (rows: Tensor, mask: Tensor | undefined): Tensor => {
  const values = cast(rows, "f32");
  return sum(mask === undefined ? values : where(rowMask(mask, values), values, 0));
};

/**
 * Counts correct answers and adds up losses over the rows for which `mask` (bool, shaped like `labels`) is true. Masked
 * rows may hold anything, including NaN, and have gradient 0.
 *
 * @param logits f32 [..., C]. @param labels integers [...].
 */
export const metricsOf = (logits: Tensor, labels: Tensor, mask?: Tensor): Metrics => {
  const right = equal(argmax(logits), cast(labels, "i32"));
  return {
    correct: sum(cast(mask ? logicalAnd(right, mask) : right, "f32")),
    lossSum: sum(crossEntropyOf(logits, labels, mask)),
    count: rowCount(labels, mask),
  };
};
