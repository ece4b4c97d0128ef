import { allReduceMean, concat, elementCount, reshape, split, type Tensor } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { AggregateContext } from "./context.ts";

/**
 * Averages several f32 tensors over the ranks, concatenated for a single all-reduce. Each result has the shape of its
 * input.
 *
 * Cost: 2(P−1)/P · 4 bytes per element.
 */
export const fusedMean = (
  tensors: readonly Tensor[],
  { axis, collective }: Pick<AggregateContext, "axis" | "collective">,
): readonly Tensor[] => {
  if (tensors.length === 0 || axisSize(axis) === 1) return tensors;
  const sizes = tensors.map(({ shape }) => elementCount(shape));
  const flat = concat(tensors.map((tensor, i) => reshape(tensor, [sizes[i]!])));
  return split(allReduceMean(flat, axis, collective), sizes).map((mean, i) => reshape(mean, tensors[i]!.shape));
};
