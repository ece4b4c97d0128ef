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
  /** What it is computed of, the same on all ranks: as many numbers as it has itself, at least. */
  readonly inputs: readonly Tensor[];
  compute(...inputs: Tensor[]): Tensor;
}

/** So many numbers of tensors: what a rank gives for a piece that another one computes, and nobody reads. */
const anyOf = (inputs: readonly Tensor[], size: number): Tensor =>
  slice(concat(inputs.map((input) => reshape(input, [elementCount(input.shape)]))), [0], [size]);

/**
 * Compute pieces that every rank needs, each on one rank along an axis, and hand them round. Without an axis each rank
 * computes all of them.
 *
 * Ranks trace different work from here on, so all that leads here is kept alike: see `keptAlike`.
 *
 * Cost: a rank's share of the work, and one broadcast per rank of what it computed.
 */
export const shareWork = (name: string, axis: string | undefined, pieces: readonly Piece[]): Tensor[] => {
  const numRanks = axis === undefined ? 1 : axisSize(axis);
  if (axis === undefined || numRanks === 1) return pieces.map(({ compute, inputs }) => compute(...inputs));
  const owners = leastLoaded(
    pieces.map(({ cost }) => cost),
    numRanks,
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
