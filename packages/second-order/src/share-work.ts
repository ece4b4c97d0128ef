import { concat, elementCount, meshCoordinate, reshape, type Shape, slice, type Tensor } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { replicaBarrier } from "./replica-barrier.ts";
import { leastLoaded } from "./least-loaded.ts";
import { broadcastTogether } from "./broadcast-together.ts";

/** Computation of one tensor that can run on any rank, independently of all other such computations. */
export interface Piece {
  readonly shape: Shape;
  /** Cost of the computation, in a unit that all computations share. */
  readonly cost: number;
  /** Mesh axis over whose ranks the computations are distributed. Undefined: each rank computes this tensor. */
  readonly axis: string | undefined;
  /**
   * Inputs of the computation, equal on all ranks. All inputs together have at least as many elements as the result.
   */
  readonly inputs: readonly Tensor[];
  compute(...inputs: Tensor[]): Tensor;
}

/**
 * Returns the first `size` elements of the inputs. Ranks other than the root need such a placeholder, whose values are
 * ignored.
 */
const placeholderFrom = (inputs: readonly Tensor[], size: number): Tensor =>
  slice(concat(inputs.map((input) => reshape(input, [elementCount(input.shape)]))), [0], [size]);

/**
 * Computes all tensors with one axis, each tensor on one rank along this axis, and returns all tensors on every rank.
 */
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
 * Computes tensors, each on one rank along the tensor's axis, and sends each tensor to all other ranks along this axis.
 * Every rank computes the tensors without an axis.
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
