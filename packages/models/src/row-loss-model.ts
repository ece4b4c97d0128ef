import { cast, multiply, type Tensor } from "@skein/tensor-core";
import { checkedApply } from "./checked-apply.ts";
import { lossResult, type LossSum } from "./loss-sum.ts";
import { type Ratio, rowCount, rowMask, sumOfRows, type Sums } from "./metrics.ts";
import type { InputsOf, Model } from "./model.ts";

/** A batch of any type. The optional `mask` marks padding rows. */
interface AnyBatch {
  /** Mask of the rows, bool [B]; false for padding rows. Absent: no row is masked. */
  readonly mask?: Tensor;
}

/**
 * Returns the inputs of a model: the batch's field `inputs` if the field exists; otherwise, all fields except `mask`.
 *
 * @example const [outputs] = model.apply(params, state, inputsOf(batch), { train: false });
 */
export const inputsOf = <Batch extends object>(batch: Batch): InputsOf<Batch> => {
  const { inputs, mask: _, ...rest } = batch as { readonly inputs?: unknown; readonly mask?: unknown };
  return (inputs ?? rest) as InputsOf<Batch>;
};

/** Functions that define a model with a custom loss per row. */
export interface RowLosses<Params, State, Batch, Outputs> {
  init: Model<Params, State>["init"];
  apply: Model<Params, State, Batch, Sums, Outputs>["apply"];
  /**
   * Returns the loss of each row, f32 [B] or [B, …]. The function receives the whole batch, so rows may be compared
   * with each other.
   */
  losses(outputs: Outputs, batch: Batch): Tensor;
  /**
   * Returns the weight of each row, of any dtype, shaped like the losses, at least 0: the loss is
   * `Σ weight · loss / Σ weight`. Weights may depend only on the batch, not on the outputs. Absent: all weights are 1.
   */
  weights?(batch: Batch): Tensor;
  /**
   * Returns additional values of each row, [B] or [B, …], by name. The sums of these values can be used in `metrics`.
   * Absent: no additional values.
   */
  rows?(outputs: Outputs, batch: Batch): Readonly<Record<string, Tensor>>;
  /**
   * Metrics by name: ratios of two sums. The available sums are `lossSum`, `count`, and the sum of each value that
   * `rows` returns. Default: no metrics.
   */
  readonly metrics?: Readonly<Record<string, Ratio>>;
}

/**
 * Completes a model for any batch, given a loss per row. Training minimizes the mean loss of unmasked rows; an
 * evaluation returns the sum.
 *
 * @example
 * const autoencoder = rowLossModel({
 *   init: (key) => ({ params: initLayers(key), state: {} }),
 *   apply: (params, state, { pixels }: { pixels: Tensor }) => [decode(params, encode(params, pixels)), state],
 *   losses: (restored, { pixels }) => mean(square(subtract(restored, pixels)), { dims: [1] }),
 * });
 */
export const rowLossModel = <Params, State, Batch extends object, Outputs>(
  parts: RowLosses<Params, State, Batch, Outputs>,
): Model<Params, State, Batch, Sums, Outputs> =>
  withRowLosses({ ...parts, apply: checkedApply(parts.apply, "outputs") });

const withRowLosses = <Params, State, Batch extends object, Outputs>({
  init,
  apply,
  losses,
  weights,
  rows,
  metrics,
}: RowLosses<Params, State, Batch, Outputs>): Model<Params, State, Batch, Sums, Outputs> => {
  const sumsOf = (outputs: Outputs, batch: Batch): LossSum => {
    const each = losses(outputs, batch);
    const { mask } = batch as AnyBatch;
    if (weights === undefined)
      return { sum: sumOfRows(each, mask), count: rowCount(each, mask && rowMask(mask, each)) };
    const own = cast(weights(batch), "f32");
    return { sum: sumOfRows(multiply(each, own), mask), count: sumOfRows(own, mask) };
  };
  return {
    init,
    apply,
    loss: (params, state, batch, context) => {
      const [outputs, next] = apply(params, state, inputsOf(batch), context);
      return lossResult(sumsOf(outputs, batch), next);
    },
    evaluate: (params, state, batch) => {
      const [outputs] = apply(params, state, inputsOf(batch), { train: false });
      const { sum: lossSum, count } = sumsOf(outputs, batch);
      const { mask } = batch as AnyBatch;
      const more = Object.entries(rows?.(outputs, batch) ?? {}).map(([name, own]) => [name, sumOfRows(own, mask)]);
      return { lossSum, count, ...Object.fromEntries(more) };
    },
    ...(metrics !== undefined && { metrics }),
  };
};
