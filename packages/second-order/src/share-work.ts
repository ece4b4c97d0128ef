import { concat, elementCount, meshCoordinate, reshape, type Shape, slice, type Tensor } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { replicaBarrier } from "./replica-barrier.ts";
import { leastLoaded } from "./least-loaded.ts";
import { broadcastTogether } from "./broadcast-together.ts";

/** A computation of one tensor that can run on any rank, independently of other pieces. */
export interface Piece {
  readonly shape: Shape;
  /** Cost, in the same unit for all pieces. */
  readonly cost: number;
  /** Mesh axis over whose ranks pieces are distributed. Undefined: each rank computes this piece. */
  readonly axis: string | undefined;
  /** Inputs of the computation, equal on all ranks. Together they have at least as many elements as the result. */
  readonly inputs: readonly Tensor[];
  compute(...inputs: Tensor[]): Tensor;
}

/**
 * Returns the first `size` elements of the inputs. Ranks other than the root need such a placeholder, whose values are
 * ignored.
 */
const placeholderFrom = (inputs: readonly Tensor[], size: number): Tensor =>
  slice(concat(inputs.map((input) => reshape(input, [elementCount(input.shape)]))), [0], [size]);

/** Computes the pieces of one axis, each piece on one rank along the axis. */
const shareAlong = (name: string, axis: string, pieces: readonly Piece[]): Tensor[] => {
  const owners = leastLoaded(
    pieces.map(({ cost }) => cost),
    axisSize(axis),
  );
  const own = meshCoordinate(axis);
  const isolated = replicaBarrier(pieces.map(({ inputs }) => inputs));
  return broadcastTogether(
    name,
    axis,
    pieces.map(({ shape, compute }, i) => ({
      root: owners[i]!,
      shape,
      value: owners[i] === own ? compute(...isolated[i]!) : placeholderFrom(isolated[i]!, elementCount(shape)),
    })),
  );
};

/**
 * Computes pieces that all ranks along their axis need. One rank along the axis computes a piece and sends it to all
 * other ranks along the axis. Every rank computes the pieces without an axis.
 *
 * Ranks trace different work after this point, so the inputs get an optimization barrier: see `replicaBarrier`.
 *
 * Cost: a rank's share of the work, and one broadcast per axis and rank.
 */
export const shareWork = (name: string, pieces: readonly Piece[]): Tensor[] => {
  const results: Tensor[] = [];
  const byAxis = Map.groupBy(pieces.keys(), (i) => pieces[i]!.axis);
  for (const [axis, indices] of byAxis) {
    const some = indices.map((i) => pieces[i]!);
    const computed =
      axis === undefined || axisSize(axis) === 1
        ? some.map(({ compute, inputs }) => compute(...inputs))
        : shareAlong(name, axis, some);
    for (const [at, i] of indices.entries()) results[i] = computed[at]!;
  }
  return results;
};
