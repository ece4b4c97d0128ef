import { meshPlace, type Shape, type Tensor } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { leastLoaded } from "./least-loaded.ts";
import { sendTogether } from "./send-together.ts";

/** One of several tensors that are computed apart. */
export interface Piece {
  readonly shape: Shape;
  /** What it costs, in any unit that is the same for all. */
  readonly cost: number;
  readonly compute: () => Tensor;
}

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
