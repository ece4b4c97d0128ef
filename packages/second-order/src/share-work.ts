import { concat, elementCount, meshPlace, reshape, type Shape, slice, type Tensor } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { keptAlike } from "./kept-alike.ts";
import { leastLoaded } from "./least-loaded.ts";
import { sendTogether } from "./send-together.ts";

/** One of several tensors that are computed apart. */
export interface Piece {
  readonly shape: Shape;
  /** What it costs, in any unit that is the same for all. */
  readonly cost: number;
  /** Mesh axis over whose ranks the pieces are shared out. Absent: each rank computes this piece. */
  readonly axis: string | undefined;
  /** What it is computed of, the same on all ranks: as many numbers as it has itself, at least. */
  readonly inputs: readonly Tensor[];
  compute(...inputs: Tensor[]): Tensor;
}

/** So many numbers of tensors: what a rank gives for a piece that another one computes, and nobody reads. */
const anyOf = (inputs: readonly Tensor[], size: number): Tensor =>
  slice(concat(inputs.map((input) => reshape(input, [elementCount(input.shape)]))), [0], [size]);

/** The pieces of one axis, each computed on one rank along it. */
const shareAlong = (name: string, axis: string, pieces: readonly Piece[]): Tensor[] => {
  const owners = leastLoaded(
    pieces.map(({ cost }) => cost),
    axisSize(axis),
  );
  const own = meshPlace(axis);
  const alike = keptAlike(pieces.map(({ inputs }) => inputs));
  return sendTogether(
    name,
    axis,
    pieces.map(({ shape, compute }, i) => ({
      root: owners[i]!,
      shape,
      value: owners[i] === own ? compute(...alike[i]!) : anyOf(alike[i]!, elementCount(shape)),
    })),
  );
};

/**
 * Compute pieces that all ranks along their axis need. One rank along the axis computes a piece and sends it to the
 * others. Each rank computes the pieces without an axis.
 *
 * Ranks trace different work from here on, so all that leads here is kept alike: see `keptAlike`.
 *
 * Cost: a rank's share of the work, and one broadcast per axis and rank of what it computed.
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
