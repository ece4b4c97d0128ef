import { allReduce, multiply, type Tensor } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";

/** `x` added up over the ranks of all `axes`. */
export const sumOverRanks = (x: Tensor, axes: readonly string[]): Tensor =>
  axes.reduce((sum, axis) => allReduce(sum, axis), x);

/** The mean of `x` over the ranks of all `axes`. */
export const meanOverRanks = (x: Tensor, axes: readonly string[]): Tensor => {
  const numRanks = axes.reduce((product, axis) => product * axisSize(axis), 1);
  return numRanks === 1 ? x : multiply(sumOverRanks(x, axes), 1 / numRanks);
};

/** The greatest `x` of the ranks of all `axes`. No gradient flows back. */
export const maxOverRanks = (x: Tensor, axes: readonly string[]): Tensor =>
  axes.reduce((greatest, axis) => allReduce(greatest, axis, "max"), x);
