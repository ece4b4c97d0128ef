import { add, divide, equal, multiply, type Tensor, where } from "@skein/tensor-core";
import { constantOf } from "@skein/tensor-core/backend";

/**
 * The loss of a batch as a sum and a count. Parts of a batch, on one rank or on several, add up both and divide once,
 * so that each row that counts has the same weight however the batch is split.
 */
export interface LossSum {
  /** Sum of the losses of the rows that count, f32 scalar. Other rows contribute neither a value nor a gradient. */
  readonly sum: Tensor;
  /** Number of rows that count, or the sum of their weights, at least 0, f32 scalar. No gradient flows through it. */
  readonly count: Tensor;
  /**
   * Terms that are means over the batch already, such as the balance loss of experts, f32 scalar. Every part of a batch
   * has the same weight in the mean of these terms. Default: none.
   */
  readonly auxiliary?: Tensor;
}

/** What `Model.loss` returns: the mean loss, the next state, and the sum that the mean was computed from. */
export type LossResult<State> = readonly [loss: Tensor, state: State, sum?: LossSum];

/** The sum divided by a count that may be 0: then nothing was added, and the result is 0 with gradient 0. */
export const dividedBy = (sum: Tensor, count: Tensor): Tensor => divide(sum, where(equal(count, 0), 1, count));

/** Mean loss of a batch: `sum / count + auxiliary`, f32 scalar; `auxiliary` alone, or 0, if no row counts. */
const meanLoss = ({ sum, count, auxiliary }: LossSum): Tensor => {
  const known = constantOf(count);
  const mean = known === undefined ? dividedBy(sum, count) : multiply(sum, 1 / known);
  return auxiliary === undefined ? mean : add(mean, auxiliary);
};

/**
 * Complete a loss that is a sum and a count to what `Model.loss` returns.
 *
 * @example loss: (params, state, batch, context) => lossResult({ sum: sum(losses), count: sum(weights) }, state)
 */
export const lossResult = <State>(sum: LossSum, state: State): LossResult<State> => [meanLoss(sum), state, sum];
