// Shapes: E experts, P ranks, e = E / P experts per rank.
import {
  add,
  ArgumentError,
  axisIndex,
  constant,
  foldIn,
  gather,
  mapTree,
  multiply,
  ownShard,
  stack,
  type Tensor,
  zipTrees,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { Experts } from "./experts/experts.ts";
import type { ShardAxes } from "./shards/expert-shards.ts";

/** Returns the number of experts per rank. Throws ArgumentError if experts are not divisible by ranks. */
export const expertsPerRank = (numExperts: number, axis: string): number => {
  const numRanks = axisSize(axis);
  if (numExperts % numRanks !== 0)
    throw new ArgumentError(
      `moeLayer: ${numExperts} experts are not divisible by the ${numRanks} ranks of axis "${axis}"; every rank holds the same number: use ${Math.ceil(numExperts / numRanks) * numRanks} experts, or a number of ranks that divides ${numExperts}`,
    );
  return numExperts / numRanks;
};

/** Stacks the parameters of several experts along a new dimension 0. */
export const stackParams = <Params>(each: readonly Params[]): Params =>
  zipTrees((...leaves: Tensor[]) => stack(leaves), each[0]!, ...each.slice(1));

/**
 * Returns the hidden dimension of a parameter of an expert.
 *
 * @throws ArgumentError if `hiddenDims` has no entry for the parameter.
 */
export const hiddenDimOf = ({ hiddenDims = {} }: Pick<Experts, "hiddenDims">, path: string): number => {
  if (!Object.hasOwn(hiddenDims, path))
    throw new ArgumentError(
      `moeLayer: experts are to be sharded, but "${path}" is not among hiddenDims [${Object.keys(hiddenDims).join(", ")}]; name its hidden dimension, or leave shards out`,
    );
  return hiddenDims[path]!;
};

export interface ExpertInitOptions {
  /** Expert at each position. */
  readonly expertOfPosition: readonly number[];
  readonly axis: string;
  readonly shards: ShardAxes | undefined;
}

/**
 * Returns the stacked initial parameters for this rank's experts, or for this rank's shards of its experts. The
 * parameters of an expert depend only on the key and the expert's number, not on its position. So all ranks must pass
 * the same key.
 */
export const initExperts = <Params>(
  experts: Experts<Params>,
  key: Tensor,
  { expertOfPosition, axis, shards }: ExpertInitOptions,
): Params => {
  const own = expertsPerRank(expertOfPosition.length, axis);
  const first = multiply(axisIndex(axis), own);
  const numbers = constant(expertOfPosition, "i32");
  const init = (number: Tensor): Params => {
    const whole = experts.init(foldIn(key, number));
    if (shards === undefined) return whole;
    return mapTree(whole, (leaf: Tensor, path) =>
      ownShard(leaf, { axis: shards.axis, dim: hiddenDimOf(experts, path) }),
    ) as Params;
  };
  return stackParams(Array.from({ length: own }, (_, i) => init(gather(numbers, add(first, i)))));
};
