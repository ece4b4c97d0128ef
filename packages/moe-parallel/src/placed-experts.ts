// Shapes: E experts, P ranks, e = E / P experts of a rank.
import {
  add,
  ArgumentError,
  axisIndex,
  constant,
  foldIn,
  gather,
  multiply,
  stack,
  type Tensor,
  zipTrees,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { Experts } from "./experts/experts.ts";

/** @throws ArgumentError where ranks would hold different numbers of experts. */
export const expertsPerRank = (numExperts: number, axis: string): number => {
  const numRanks = axisSize(axis);
  if (numExperts % numRanks !== 0)
    throw new ArgumentError(
      `moeLayer: ${numExperts} experts cannot be shared evenly by the ${numRanks} ranks of axis "${axis}"; every rank holds as many: use ${Math.ceil(numExperts / numRanks) * numRanks} experts, or a number of ranks that divides ${numExperts}`,
    );
  return numExperts / numRanks;
};

/** Parameters of several experts as those of one, with a new dimension 0. */
export const stackParams = <Params>(each: readonly Params[]): Params =>
  zipTrees((...leaves: Tensor[]) => stack(leaves), each[0]!, ...each.slice(1));

/**
 * First parameters of this rank's experts, stacked. An expert's own follow from the key and its number alone, so they
 * are the same wherever it is placed, and all ranks pass the same key.
 */
export const initPlaced = <Params>(
  { init }: Experts<Params>,
  key: Tensor,
  byPlace: readonly number[],
  axis: string,
): Params => {
  const own = expertsPerRank(byPlace.length, axis);
  const first = multiply(axisIndex(axis), own);
  const numbers = constant(byPlace, "i32");
  return stackParams(Array.from({ length: own }, (_, i) => init(foldIn(key, gather(numbers, add(first, i))))));
};
