import { allReduce, type Tensor } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";

/** `x` added up over the ranks of all `axes`. */
export const sumOverRanks = (x: Tensor, axes: readonly string[]): Tensor =>
  axes.reduce((sum, axis) => allReduce(sum, axis), x);

/** How many ranks lie along all `axes` together. */
export const numRanksOf = (axes: readonly string[]): number =>
  axes.reduce((product, axis) => product * axisSize(axis), 1);

/** The greatest `x` of the ranks of all `axes`. No gradient flows back. */
export const maxOverRanks = (x: Tensor, axes: readonly string[]): Tensor =>
  axes.reduce((greatest, axis) => allReduce(greatest, axis, "max"), x);
