import { add, divide, equal, multiply, type Tensor, where } from "@skein/tensor-core";
import { constantOf } from "@skein/tensor-core/backend";

/**
 * The loss of a batch as a sum and a count. Sums and counts are added over ranks and microbatches, and the total sum is
 * divided by the total count, so that each unmasked row has the same weight, no matter how the batch is divided.
 */
export interface LossSum {
  /** Sum of the losses of unmasked rows, f32 scalar. Masked rows do not contribute to the sum or the gradient. */
  readonly sum: Tensor;
  /** Number of unmasked rows, or sum of their weights, f32 scalar, 0 or more. No gradient flows through the count. */
  readonly count: Tensor;
  /**
   * Sum of loss terms that are already means over the batch, such as the balance loss of experts, f32 scalar. Every
   * microbatch has the same weight in the mean of these terms. Absent: no such terms.
   */
  readonly auxiliary?: Tensor;
}

/** Result of `Model.loss`: the mean loss, the next state, and the sum and count from which the mean was computed. */
export type LossResult<State> = readonly [loss: Tensor, state: State, sum?: LossSum];

/** Divides a sum by a count. For a count of 0 the result is 0 with gradient 0. */
export const divideOrZero = (sum: Tensor, count: Tensor): Tensor => divide(sum, where(equal(count, 0), 1, count));

/**
 * Returns the mean loss of a batch, `sum / count + auxiliary`, f32 scalar. If all rows are masked, the result is
 * `auxiliary`, or 0 if `auxiliary` is absent.
 */
const meanLoss = ({ sum, count, auxiliary }: LossSum): Tensor => {
  const known = constantOf(count);
  const mean = known === undefined ? divideOrZero(sum, count) : multiply(sum, 1 / known);
  return auxiliary === undefined ? mean : add(mean, auxiliary);
};

/**
 * Returns the result of `Model.loss` for a loss that is given as a sum and a count.
 *
 * @example loss: (params, state, batch, context) => lossResult({ sum: sum(losses), count: sum(weights) }, state)
 */
export const lossResult = <State>(sum: LossSum, state: State): LossResult<State> => [meanLoss(sum), state, sum];
