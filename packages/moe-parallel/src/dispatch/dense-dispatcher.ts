// Shapes: D width of a token, P ranks, E experts, e = E / P experts of a rank, C slots of an expert for tokens of one
// rank.
import { allToAll, arange, full, multiply, reshape, type Tensor, transpose } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { TokenDispatcher } from "./token-dispatcher.ts";

/** By sizes alone rows are brought back. */
export type DenseMetadata = Readonly<Record<string, never>>;

/** Swap the two leading dimensions of rows in [a, b] blocks: [a·b·C, D] to [b·a·C, D]. */
const swapBlocks = (rows: Tensor, [a, b]: readonly [number, number]): Tensor => {
  const width = rows.shape[1]!;
  return reshape(transpose(reshape(rows, [a, b, -1, width]), [1, 0, 2, 3]), [-1, width]);
};

/**
 * All slots travel, full or empty, by one all-to-all there and one back: `E·C` rows leave each rank and as many arrive.
 * An expert sees `P·C` rows, zeros where a slot is empty.
 *
 * Cost: `4·E·C·D·(P − 1)/P` bytes sent per rank, each way; as much in backward.
 */
export const denseDispatcher = (): TokenDispatcher<DenseMetadata> => ({
  layout: (_, { numExperts, slots }) => ({
    numRows: numExperts * slots,
    firstRow_E: multiply(arange(numExperts), slots),
  }),
  dispatch: (rows_RD, _, { numExperts, axis }) => {
    const numRanks = axisSize(axis);
    const own = numExperts / numRanks;
    const rows_SD = swapBlocks(allToAll(rows_RD, axis), [numRanks, own]);
    return { rows_SD, counts_e: full([own], rows_SD.shape[0]! / own, "i32"), metadata: {} };
  },
  combine: (rows_SD, _, { numExperts, axis }) => {
    const numRanks = axisSize(axis);
    return allToAll(swapBlocks(rows_SD, [numExperts / numRanks, numRanks]), axis);
  },
});
