// Shapes: A ranks along the axis of the exchange, S neighbours of them whose rows are summands, N ranks along the axis
// of the gathering, b rows from one rank to another, D width of a row.
import { allGather, allToAll, concat, reshape, slice, sum, type Tensor } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { chunkRanges } from "./chunks.ts";

export interface ExchangeAndGatherOptions {
  /** Along which rows are exchanged. */
  readonly axis: string;
  /** Along which what came is gathered. */
  readonly gatherAxis: string;
  /** S: what comes from so many ranks side by side is added up where it arrives, before it is gathered. Default: 1. */
  readonly numSummands?: number;
  /** Into how many pieces each rank's b rows are cut, at most. */
  readonly numPieces: number;
}

// Those of one priority wait for each other, those of several are under way at once.
const exchangePriority = 2;
const gatherPriority = 1;

/**
 * Exchange rows along one axis and gather what came along another, in pieces, so that one piece is gathered while the
 * next is exchanged: `allGather(sum(allToAll(x)))`, in the same order of rows.
 *
 * Backward does the transposes in the same pieces: one piece's reduce-scatter runs beside another's all-to-all.
 *
 * Cost: `(A − 1)/A` of the bytes of `x` and `(N − 1)/S` times them sent per rank; the time of the longer of both, and
 * of one piece of the other.
 *
 * @param x_RD [A·b, D], rows for the first rank, then for the second, …
 * @returns [N·(A/S)·b, D]: of each rank along the gathering axis what came to it, by source.
 * Source: Parm (INFOCOM 2024), "simultaneous AlltoAll and AllGather" of schedule S2, which cuts by source.
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
    const came = reshape(allToAll(leaving, axis, { priority: exchangePriority }), [numSources, numSummands, -1, width]);
    const added = reshape(sum(came, { dims: 1 }), [-1, width]);
    const gathered = allGather(added, gatherAxis, { priority: gatherPriority });
    return reshape(gathered, [axisSize(gatherAxis) * numSources, end - begin, width]);
  });
  return reshape(concat(pieces, { dim: 1 }), [-1, width]);
};
