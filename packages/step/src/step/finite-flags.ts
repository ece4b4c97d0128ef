import {
  all,
  allReduce,
  cast,
  equal,
  flattenTree,
  isFinite,
  leafPaths,
  logicalNot,
  reshape,
  shardAxes,
  type Sharding,
  slice,
  stack,
  type Tensor,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";

/**
 * Computes whether the loss and each mean gradient are finite, bool [1 + tensors]. The flags are equal on all ranks;
 * the flag of a sharded parameter covers all shards.
 */
export const finiteFlags = (loss: Tensor, mean: unknown, sharding: Sharding): Tensor => {
  const flags = flattenTree<Tensor>(mean).leaves.map((tensor) => all(isFinite(tensor)));
  const paths = leafPaths(mean);
  const axesOfFlag = (i: number): readonly string[] => shardAxes(sharding(paths[i]!));
  for (const some of Map.groupBy(flags.keys(), (i) => axesOfFlag(i).join()).values()) {
    const axes = axesOfFlag(some[0]!).filter((axis) => axisSize(axis) > 1);
    if (axes.length === 0) continue;
    const own = stack(some.map((i) => cast(logicalNot(flags[i]!), "i32")));
    const faults = axes.reduce((sum, axis) => allReduce(sum, axis), own);
    for (const [at, i] of some.entries()) flags[i] = equal(reshape(slice(faults, [at], [at + 1]), []), 0);
  }
  return stack([all(isFinite(loss)), ...flags]);
};
