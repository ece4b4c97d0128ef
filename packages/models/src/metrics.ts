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
 * What a model is judged by: f32 scalars, sums over the rows of a batch that count, which are added up over batches and
 * ranks. Beside the two that every model has, of any name.
 */
export interface Sums {
  /** Of the losses; nats, where the loss is a cross-entropy. */
  readonly lossSum: Tensor;
  /** Rows that count. Exact up to 2²⁴ rows. */
  readonly count: Tensor;
  readonly [name: string]: Tensor;
}

/** A figure for people: one of a model's sums over another one, both added up over all that it is judged by. */
export interface Ratio {
  readonly sum: string;
  /** Such as `count`, for a mean. */
  readonly per: string;
}

/** Sums over rows of classes; divide by `count` when all batches are added up. */
export interface Metrics extends Sums {
  /** Rows whose largest logit is the label's, f32 scalar. */
  readonly correct: Tensor;
}

/** Cross-entropy of each row, 0 where `mask` leaves it out; labels of any integer dtype. */
const crossEntropyOf = (logits: Tensor, labels: Tensor, mask?: Tensor): Tensor =>
  crossEntropyPerRow(logits, cast(labels, "i32"), { ...(mask && { mask }) });

/** A mask per batch entry, bool [B], for each row of `labels` [B, …]. */
export const rowMask = (mask: Tensor, labels: Tensor): Tensor =>
  broadcastTo(reshape(mask, [...mask.shape, ...labels.shape.slice(mask.rank).map(() => 1)]), labels.shape);

/**
 * Number of rows that count, f32 scalar; a constant without a mask.
 *
 * @param mask bool, shaped like `rows`; undefined if all rows count.
 */
export const rowCount = ({ shape }: Tensor, mask: Tensor | undefined): Tensor =>
  mask === undefined ? full([], elementCount(shape)) : sum(cast(mask, "f32"));

/**
 * Sum of the rows that count, f32 scalar; what another row holds, NaN too, is nowhere.
 *
 * @param rows `[B]` or `[B, …]` of any dtype. @param mask bool [B]; undefined where all rows count.
 */
export const sumOfRows = (rows: Tensor, mask: Tensor | undefined): Tensor => {
  const values = cast(rows, "f32");
  return sum(mask === undefined ? values : where(rowMask(mask, values), values, 0));
};

/**
 * Count right answers and add up the losses of the rows that `mask` (bool, shaped like `labels`) lets count. A row that
 * is left out may hold anything, NaN included, and has gradient 0.
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
