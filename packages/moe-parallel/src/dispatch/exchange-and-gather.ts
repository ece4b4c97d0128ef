// Shapes: A ranks along the axis of the exchange, S adjacent ranks whose rows are summed, N ranks along the axis of the
// all-gather, b rows from one rank to another rank, D row width.
import { allGather, allToAll, concat, reshape, slice, sum, type Tensor } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { chunkRanges } from "./chunks.ts";

export interface ExchangeAndGatherOptions {
  /** Mesh axis of the all-to-all. */
  readonly axis: string;
  /** Mesh axis of the all-gather. */
  readonly gatherAxis: string;
  /** S, number of adjacent source ranks whose received rows are summed before the all-gather. Default: 1. */
  readonly numSummands?: number;
  /** Maximum number of pieces into which the b rows for each rank are split. */
  readonly numPieces: number;
}

// Collectives of equal priority wait for each other. Collectives of different priorities run concurrently.
const exchangePriority = 2;
const gatherPriority = 1;

/**
 * All-to-all along one axis followed by an all-gather along another axis: `allGather(sum(allToAll(x)))`. Both
 * collectives run in pieces, so that one piece is gathered while the next piece is exchanged. The order of rows does
 * not depend on the pieces.
 *
 * The backward pass runs the transposed collectives in the same pieces: the reduce-scatter of one piece overlaps with
 * the all-to-all of another piece.
 *
 * Cost: `(A − 1)/A` of the bytes of `x` plus `(N − 1)/S` times these bytes sent per rank. Time: the slower collective,
 * plus one piece of the faster collective.
 *
 * @param x_RD [A·b, D], rows for the first rank, then for the second rank, …
 * @returns [N·(A/S)·b, D]: the received rows of each rank along the axis of the all-gather, ordered by source.
 * Source: Parm (INFOCOM 2024), "simultaneous AlltoAll and AllGather" of schedule S2, which splits by source.
 */
export const exchangeAndGather = (
  x_RD: Tensor,
  { axis, gatherAxis, numSummands = 1, numPieces }: ExchangeAndGatherOptions,
): Tensor => {
  const numRanks = axisSize(axis);
  const width = x_RD.shape[1]!;
  const x_AbD = reshape(x_RD, [numRanks, -1, width]);
  const numSources = numRanks / numSummands;
  const pieces = chunkRanges(x_AbD.shape[1]!, numPieces).map(({ begin, end }) => {
    const leaving = reshape(slice(x_AbD, [0, begin], [numRanks, end]), [-1, width]);
    const received = reshape(allToAll(leaving, axis, { priority: exchangePriority }), [
      numSources,
      numSummands,
      -1,
      width,
    ]);
    const added = reshape(sum(received, { dims: 1 }), [-1, width]);
    const gathered = allGather(added, gatherAxis, { priority: gatherPriority });
    return reshape(gathered, [axisSize(gatherAxis) * numSources, end - begin, width]);
  });
  return reshape(concat(pieces, { dim: 1 }), [-1, width]);
};
