import { dividedBy, type LossResult } from "@skein/models";
import { add, allReduce, inPhase, type Mesh, multiply, scope, stopGradient, type Tensor } from "@skein/tensor-core";
import { axisSize, constantOf } from "@skein/tensor-core/backend";
import { everyRankAxis } from "../job/mesh.ts";

/** How a step splits a batch. */
export interface BatchSplit {
  /** Mesh axis of all ranks. */
  readonly axis: string;
  /** Parts that each rank computes one after the other. */
  readonly numParts: number;
}

/** How the step splits a batch over ranks and parts. */
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
 * Number of rows that count in this part of a batch, f32 scalar. Traced.
 *
 * @returns undefined if it is a constant, the same in every part.
 */
export const countOfPart = ([, , ofRows]: LossResult<unknown>): Tensor | undefined =>
  ofRows === undefined || constantOf(ofRows.count) !== undefined ? undefined : stopGradient(ofRows.count);

/**
 * What a part contributes to a rank's loss: the contributions of a rank's parts add up to the rank's loss, and the mean
 * of these over the ranks is the loss of the whole batch, `Σ sum / Σ count` plus the mean of the auxiliary terms.
 * Traced. 0 with gradient 0 if no row of the batch counts.
 *
 * @param rankCount number of rows that count in all parts of this rank, f32 scalar. Default: that of this part, which
 * is then the only one.
 * Cost: an all-reduce of one number, unless the count is a constant.
 */
export const lossOfPart = (
  result: LossResult<unknown>,
  { axis, numParts }: BatchSplit,
  rankCount: Tensor | undefined,
): Tensor => {
  const share = (mean: Tensor): Tensor => (numParts === 1 ? mean : multiply(mean, 1 / numParts));
  const [loss, , ofRows] = result;
  if (ofRows === undefined) return share(loss);
  const { sum, count, auxiliary } = ofRows;
  const counted = countOfPart(result);
  const total = (own: Tensor): Tensor =>
    inPhase("communication", () => scope("row-count", () => allReduce(rankCount ?? own, axis)));
  const mean =
    counted === undefined
      ? multiply(sum, 1 / (constantOf(count)! * numParts))
      : multiply(dividedBy(sum, total(counted)), axisSize(axis));
  return auxiliary === undefined ? mean : add(mean, share(auxiliary));
};
