import { meshPlace, type Shape, type Tensor } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { sendTogether } from "./send-together.ts";

/** One of several tensors that are computed apart. */
export interface Piece {
  readonly shape: Shape;
  /** What it costs, in any unit that is the same for all. */
  readonly cost: number;
  readonly compute: () => Tensor;
}

/** Largest first, each to the rank with the least to do: the rank of each piece. */
export const leastLoaded = (costs: readonly number[], numRanks: number): number[] => {
  const loads = Array.from({ length: numRanks }, () => 0);
  const owners: number[] = [];
  for (const [i, cost] of [...costs.entries()].sort(([a, x], [b, y]) => y - x || a - b)) {
    const rank = loads.indexOf(Math.min(...loads));
    owners[i] = rank;
    loads[rank]! += cost;
  }
  return owners;
};

/**
 * Compute pieces that every rank needs, each on one rank along an axis, and hand them round. Without an axis each rank
 * computes all of them.
 *
 * Cost: a rank's share of the work, and one broadcast per rank of what it computed.
 */
export const shareWork = (name: string, axis: string | undefined, pieces: readonly Piece[]): Tensor[] => {
  const numRanks = axis === undefined ? 1 : axisSize(axis);
  if (axis === undefined || numRanks === 1) return pieces.map(({ compute }) => compute());
  const owners = leastLoaded(
    pieces.map(({ cost }) => cost),
    numRanks,
  );
  const own = meshPlace(axis);
  return sendTogether(
    name,
    axis,
    pieces.map(({ shape, compute }, i) => ({
      root: owners[i]!,
      shape,
      ...(owners[i] === own && { value: compute() }),
    })),
  );
};
