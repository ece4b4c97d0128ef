import { ArgumentError } from "./errors.ts";
import { slice } from "./functions/movement.ts";
import { axisSize, meshPlace } from "./graph/emit.ts";
import type { Tensor } from "./graph/tensor.ts";

/** How a tensor is shared out: of P ranks along a mesh axis, rank i has the i-th of P equal parts along a dimension. */
export interface Shard {
  readonly axis: string;
  readonly dim: number;
}

/** How the tensor at each path of a tree is shared out; undefined for one that every rank has whole. */
export type Sharding = (path: string) => Shard | undefined;

/** Every rank has everything. */
export const unsharded: Sharding = () => undefined;

/**
 * The part of a tensor that the rank which is traced for has.
 *
 * @throws ArgumentError where the ranks along the axis do not divide the dimension.
 * Cost: a copy of the part; nothing with one rank.
 */
export const ownShard = (whole: Tensor, { axis, dim }: Shard): Tensor => {
  const [numRanks, length] = [axisSize(axis), whole.shape[dim]];
  if (numRanks === 1) return whole;
  if (length === undefined || length % numRanks !== 0)
    throw new ArgumentError(
      `ownShard: [${whole.shape.join(", ")}] is shared out along dimension ${dim} by ${numRanks} ranks of axis "${axis}", which do not divide ${length}; use a multiple of ${numRanks}, or fewer ranks`,
    );
  const each = length / numRanks;
  const first = meshPlace(axis) * each;
  const at = (own: number, other: readonly number[]): number[] => other.map((size, d) => (d === dim ? own : size));
  return slice(
    whole,
    at(
      first,
      whole.shape.map(() => 0),
    ),
    at(first + each, whole.shape),
  );
};
