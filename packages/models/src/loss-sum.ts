import { add, divide, equal, multiply, type Tensor, where } from "@skein/tensor-core";
import { constantOf } from "@skein/tensor-core/backend";

/**
 * The loss of a batch as a sum and a count. Ranks and microbatches add up sums and counts and divide once, so that each
 * row that counts has the same weight for any split of the batch.
 */
export interface LossSum {
  /** Sum of the losses of the rows that count, f32 scalar. Other rows contribute neither a value nor a gradient. */
  readonly sum: Tensor;
  /**
   * Number of rows that count, or the sum of their weights, at least 0, f32 scalar. No gradient flows through the
   * count.
   */
  readonly count: Tensor;
  /**
   * Terms that are means over the batch already, such as the balance loss of experts, f32 scalar. Every microbatch has
   * the same weight in the mean of these terms. Absent: none.
   */
  readonly auxiliary?: Tensor;
}

/** Result of `Model.loss`: the mean loss, the next state, and the sum that the mean was computed from. */
export type LossResult<State> = readonly [loss: Tensor, state: State, sum?: LossSum];

/** Divides a sum by a count; for a count of 0 the result is 0 with gradient 0. */
export const divideOrZero = (sum: Tensor, count: Tensor): Tensor => divide(sum, where(equal(count, 0), 1, count));

/**
 * Returns the mean loss of a batch: `sum / count + auxiliary`, f32 scalar; only `auxiliary`, or 0, if no row counts.
 */
const meanLoss = ({ sum, count, auxiliary }: LossSum): Tensor => {
  const known = constantOf(count);
  const mean = known === undefined ? divideOrZero(sum, count) : multiply(sum, 1 / known);
  return auxiliary === undefined ? mean : add(mean, auxiliary);
};

/**
 * Returns the result of `Model.loss` for a loss given as a sum and a count.
 *
 * @example loss: (params, state, batch, context) => lossResult({ sum: sum(losses), count: sum(weights) }, state)
 */
export const lossResult = <State>(sum: LossSum, state: State): LossResult<State> => [meanLoss(sum), state, sum];
