import { allReduce, type Tensor } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";

/** Returns the sum of `x` over the ranks of all `axes`. */
export const sumOverRanks = (x: Tensor, axes: readonly string[]): Tensor =>
  axes.reduce((sum, axis) => allReduce(sum, axis), x);

/** Returns the number of ranks along all `axes` together. */
export const numRanksOf = (axes: readonly string[]): number =>
  axes.reduce((product, axis) => product * axisSize(axis), 1);

/** Returns the maximum of `x` over the ranks of all `axes`. Not differentiable. */
export const maxOverRanks = (x: Tensor, axes: readonly string[]): Tensor =>
  axes.reduce((greatest, axis) => allReduce(greatest, axis, "max"), x);
