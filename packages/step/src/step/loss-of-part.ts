import { everyRankAxis } from "@skein/job/node";
import { divideOrZero, type LossResult } from "@skein/models";
import { add, allReduce, inPhase, type Mesh, multiply, scope, stopGradient, type Tensor } from "@skein/tensor-core";
import { axisSize, constantOf } from "@skein/tensor-core/backend";

/** Split of a batch over ranks, and of each rank's batch into microbatches. */
export interface BatchSplit {
  /** Mesh axis over which the batch is split. Covers all ranks. */
  readonly axis: string;
  /** Number of microbatches that each rank computes one after the other. */
  readonly numParts: number;
}

/** Returns the split of a batch over ranks, and of each rank's batch into microbatches. */
export const splitOf = ({
  mesh,
  accumulate: numParts,
}: {
  readonly mesh: Mesh;
  readonly accumulate: number;
}): BatchSplit => ({
  axis: everyRankAxis(mesh),
  numParts,
});

/**
 * Returns the number of unmasked rows in this microbatch, f32 scalar. Traced.
 *
 * @returns undefined if the loss has no row sum, or if the number is a constant and therefore equal in all
 * microbatches.
 */
export const countOfPart = ([, , rowSum]: LossResult<unknown>): Tensor | undefined =>
  rowSum === undefined || constantOf(rowSum.count) !== undefined ? undefined : stopGradient(rowSum.count);

/**
 * Computes the contribution of a microbatch to the rank's loss. Traced. The contributions of all microbatches add up to
 * the rank's loss. The mean over the ranks is the loss of the whole batch: `Σ sum / Σ count` plus the mean of the
 * auxiliary terms. If all rows of the batch are masked, the quotient and its gradient are 0.
 *
 * @param rankCount Number of unmasked rows in all microbatches of this rank, f32 scalar. Default: the number in this
 * microbatch, for a batch that is not split. Cost: an all-reduce of one number, unless the count is a constant.
 */
export const lossOfPart = (
  result: LossResult<unknown>,
  { axis, numParts }: BatchSplit,
  rankCount: Tensor | undefined,
): Tensor => {
  const share = (mean: Tensor): Tensor => (numParts === 1 ? mean : multiply(mean, 1 / numParts));
  const [loss, , rowSum] = result;
  if (rowSum === undefined) return share(loss);
  const { sum, count, auxiliary } = rowSum;
  const counted = countOfPart(result);
  const total = (own: Tensor): Tensor =>
    inPhase("communication", () => scope("row-count", () => allReduce(rankCount ?? own, axis)));
  const mean =
    counted === undefined
      ? multiply(sum, 1 / (constantOf(count)! * numParts))
      : multiply(divideOrZero(sum, total(counted)), axisSize(axis));
  return auxiliary === undefined ? mean : add(mean, share(auxiliary));
};
