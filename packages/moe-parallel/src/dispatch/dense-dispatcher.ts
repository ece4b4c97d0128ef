// Shapes: T tokens of this rank, D width of a token, P ranks, E experts, e = E / P experts of a rank, C slots of an
// expert for tokens of one rank, c slots of a chunk.
import {
  add,
  allToAll,
  arange,
  concat,
  divide,
  full,
  less,
  minimum,
  multiply,
  reshape,
  scope,
  slice,
  subtract,
  type Tensor,
  transpose,
  where,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { Order } from "../order.ts";
import { fromRows, layOut, rowsOf, type RowTokens, toRows } from "../rows.ts";
import { chunkRanges } from "./chunks.ts";
import type { DispatchSizes, TokenDispatcher } from "./token-dispatcher.ts";

export type DenseMetadata = RowTokens;

/** Swap the two leading dimensions of rows in [a, b] blocks: [a·b·c, D] to [b·a·c, D]. */
export const swapBlocks = (rows: Tensor, [a, b]: readonly [number, number]): Tensor => {
  const width = rows.shape[1]!;
  return reshape(transpose(reshape(rows, [a, b, -1, width]), [1, 0, 2, 3]), [-1, width]);
};

/** Rows by chunk, then by expert, then by slot: i32 [T, K]. Each chunk of a rank is one piece. */
const rowsByChunk = ({ experts_TK, slots_TK }: Order, { numExperts, slots, numChunks }: DispatchSizes): Tensor => {
  const { end: size } = chunkRanges(slots, numChunks)[0]!;
  const begin_TK = multiply(divide(slots_TK, size), size);
  const width_TK = minimum(subtract(slots, begin_TK), size);
  const inChunk_TK = add(multiply(experts_TK, width_TK), subtract(slots_TK, begin_TK));
  return where(less(experts_TK, 0), -1, add(multiply(begin_TK, numExperts), inChunk_TK));
};

/**
 * All slots travel, full or empty, by one all-to-all there and one back: `E·C` rows leave each rank and as many arrive.
 * An expert sees `P·C` rows, zeros where a slot is empty. Chunks are slots: those of each expert are cut.
 *
 * Over hosts it needs no levels of its own: the communicator does an all-to-all in two where that takes less.
 *
 * Cost: `4·E·C·D·(P − 1)/P` bytes sent per rank, each way; as much in backward. Chunks change nothing of it, and copy
 * the rows that come back once more.
 */
export const denseDispatcher = (): TokenDispatcher<DenseMetadata> => ({
  dispatch: (x_TD, order, sizes) => {
    const { numExperts, slots, numChunks, axis } = sizes;
    const numRanks = axisSize(axis);
    const own = numExperts / numRanks;
    const numRows = numExperts * slots;
    const ranges = chunkRanges(slots, numChunks);
    const byExpert = scope("order", () =>
      layOut(rowsOf(order, multiply(arange(numExperts), slots)), order.weights_TK, numRows),
    );
    const leaving_RD = scope("order", () =>
      toRows(x_TD, ranges.length === 1 ? byExpert : layOut(rowsByChunk(order, sizes), order.weights_TK, numRows)),
    );
    const chunks = ranges.map(({ begin, end }) =>
      scope("dispatch", () => {
        const leaving = slice(leaving_RD, [begin * numExperts], [end * numExperts]);
        const rows_SD = swapBlocks(allToAll(leaving, axis), [numRanks, own]);
        return { rows_SD, counts_e: full([own], numRanks * (end - begin), "i32") };
      }),
    );
    return { chunks, metadata: byExpert };
  },
  combine: (done, byExpert, { numExperts, numTokens, axis }) => {
    const numRanks = axisSize(axis);
    const width = done[0]!.shape[1]!;
    const rows_RD = scope("combine", () => {
      const home = done.map((rows_SD) => allToAll(swapBlocks(rows_SD, [numExperts / numRanks, numRanks]), axis));
      if (home.length === 1) return home[0]!;
      const slotsOfChunks = home.map((rows) => reshape(rows, [numExperts, -1, width]));
      return reshape(concat(slotsOfChunks, { dim: 1 }), [-1, width]);
    });
    return scope("inverse-order", () => fromRows(rows_RD, byExpert, numTokens));
  },
});
