// Shapes: T tokens of this rank, D token width, P ranks, E experts, e = E / P experts per rank, C slots per expert for
// the tokens of one rank, c slots per chunk, R = E·C slots in total.
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
import { checkPriority, tokenPriority } from "../options.ts";
import type { Order } from "../order.ts";
import { fromRows, assignRows, rowsOf, type RowTokens, toRows } from "../rows.ts";
import { type ChunkRange, chunkRanges } from "./chunks.ts";
import { runWithBackwardChunks } from "./backward-chunks.ts";
import type { DispatchSizes, ExpertRows, TokenDispatcher } from "./token-dispatcher.ts";

export interface DenseDispatcherOptions {
  /**
   * Priority of the collectives, 0 to 3. Collectives of equal priority wait for each other; a higher priority is sent
   * first. Default: 3.
   */
  readonly priority?: number;
}

/** State of the dense dispatcher that `combine` needs: the token of each row. */
export type DenseMetadata = RowTokens;

/** Dispatch sizes together with the priority of collectives. */
type PrioritizedSizes = DispatchSizes & { readonly priority: number };

/** Swaps the two leading dimensions of rows in [a, b] blocks: [a·b·c, D] to [b·a·c, D]. */
export const swapBlocks = (rows: Tensor, [a, b]: readonly [number, number]): Tensor => {
  const width = rows.shape[1]!;
  return reshape(transpose(reshape(rows, [a, b, -1, width]), [1, 0, 2, 3]), [-1, width]);
};

/**
 * Returns the row of each entry, i32 [T, K]. Rows are ordered by chunk, then by expert, then by slot, so each chunk of
 * a rank is contiguous.
 */
const rowsByChunk = ({ experts_TK, slots_TK }: Order, { numExperts, slots, numChunks }: DispatchSizes): Tensor => {
  const { end: size } = chunkRanges(slots, numChunks)[0]!;
  const begin_TK = multiply(divide(slots_TK, size), size);
  const width_TK = minimum(subtract(slots, begin_TK), size);
  const inChunk_TK = add(multiply(experts_TK, width_TK), subtract(slots_TK, begin_TK));
  return where(less(experts_TK, 0), -1, add(multiply(begin_TK, numExperts), inChunk_TK));
};

/** Returns the token and weight of each slot. Slots are ordered by expert, independent of the number of chunks. */
const byExpertOf = (order: Order, { numExperts, slots }: DispatchSizes): RowTokens =>
  scope("order", () =>
    assignRows(rowsOf(order, multiply(arange(numExperts), slots)), order.weights_TK, numExperts * slots),
  );

/** Returns the rows that this rank's experts receive in one chunk: all slots of the chunk, used or empty. */
const expertRows = (rows_SD: Tensor, { numExperts, axis }: DispatchSizes, { begin, end }: ChunkRange): ExpertRows => {
  const numRanks = axisSize(axis);
  return { rows_SD, counts_e: full([numExperts / numRanks], numRanks * (end - begin), "i32") };
};

/** Sends tokens, in their slots, to the ranks of their experts. */
const sendToExperts = (
  x_TD: Tensor,
  order: Order,
  sizes: PrioritizedSizes,
  byExpert: RowTokens = byExpertOf(order, sizes),
): readonly ExpertRows[] => {
  const { numExperts, slots, numChunks, axis, priority } = sizes;
  const numRanks = axisSize(axis);
  const ranges = chunkRanges(slots, numChunks);
  const leaving_RD = scope("order", () =>
    toRows(x_TD, ranges.length === 1 ? byExpert : assignRows(rowsByChunk(order, sizes), undefined, numExperts * slots)),
  );
  return ranges.map((range) =>
    scope("dispatch", () => {
      const leaving = slice(leaving_RD, [range.begin * numExperts], [range.end * numExperts]);
      return expertRows(
        swapBlocks(allToAll(leaving, axis, { priority }), [numRanks, numExperts / numRanks]),
        sizes,
        range,
      );
    }),
  );
};

/** Sends the experts' outputs back, and restores the slots of all chunks: f32 [R, D], ordered by expert. */
const returnRows = (outputs: readonly Tensor[], { numExperts, axis, priority }: PrioritizedSizes): Tensor =>
  scope("combine", () => {
    const numRanks = axisSize(axis);
    const width = outputs[0]!.shape[1]!;
    const returned = outputs.map((rows_SD) =>
      allToAll(swapBlocks(rows_SD, [numExperts / numRanks, numRanks]), axis, { priority }),
    );
    if (returned.length === 1) return returned[0]!;
    const slotsOfChunks = returned.map((rows) => reshape(rows, [numExperts, -1, width]));
    return reshape(concat(slotsOfChunks, { dim: 1 }), [-1, width]);
  });

/** Rearranges received rows into another number of chunks. Copies rows, but sends nothing. */
const rechunk = (rows: readonly Tensor[], sizes: DispatchSizes, numChunks: number): readonly ExpertRows[] => {
  const { numExperts, slots } = sizes;
  const arrived = chunkRanges(slots, sizes.numChunks);
  const width = rows[0]!.shape[1]!;
  return scope("dispatch", () =>
    chunkRanges(slots, numChunks).map((range) => {
      const pieces = arrived.flatMap(({ begin, end }, i) => {
        const [first, last] = [Math.max(begin, range.begin), Math.min(end, range.end)];
        if (first >= last) return [];
        // The slots of e experts from P ranks are E segments of equal length. Takes one part of each segment.
        const bySlot = reshape(rows[i]!, [numExperts, end - begin, width]);
        return [slice(bySlot, [0, first - begin], [numExperts, last - begin])];
      });
      return expertRows(reshape(concat(pieces, { dim: 1 }), [-1, width]), sizes, range);
    }),
  );
};

/**
 * Dispatcher that sends all slots, used or empty, with one all-to-all for dispatch and one for combine: `E·C` rows
 * leave and reach each rank. An expert processes `P·C` rows, with zeros in empty slots. Chunks are ranges of slots: the
 * slots of each expert are split.
 *
 * Needs no levels for several hosts, because the communicator splits an all-to-all into two levels if two levels are
 * faster.
 *
 * Cost: `4·E·C·D·(P − 1)/P` bytes sent per rank in each direction, and the same in backward. With several chunks, the
 * bytes are the same, but the returned rows are copied once more. If backward has a different number of chunks, the
 * received rows are also copied, and the experts' activations are recomputed: all flops except the last product.
 * @throws ArgumentError if the priority is invalid.
 * @example
 * ```ts
 * const moe = moeLayer({
 *   gate: switchGate({ width: 4, numExperts: 2 }),
 *   experts: geluExperts({ width: 4, hidden: 8 }),
 *   dispatcher: denseDispatcher(),
 * });
 * const { params } = await evaluate(moe.init, referenceBackend())(randomKey(1));
 * console.log(params.experts.up_DF.shape); // [2, 4, 8]
 * ```
 */
export const denseDispatcher = ({
  priority = tokenPriority,
}: DenseDispatcherOptions = {}): TokenDispatcher<DenseMetadata> => {
  checkPriority("denseDispatcher", priority);
  return {
    dispatch: (x_TD, order, sizes) => {
      const byExpert = byExpertOf(order, sizes);
      return { chunks: sendToExperts(x_TD, order, { ...sizes, priority }, byExpert), metadata: byExpert };
    },
    combine: (outputs, byExpert, sizes) => {
      const returned_RD = returnRows(outputs, { ...sizes, priority });
      return scope("inverse-order", () => fromRows(returned_RD, byExpert, sizes.numTokens));
    },
    runWithBackwardChunks: (x_TD, order, sizes, work) => {
      const byExpert = byExpertOf(order, sizes);
      const returned_RD = runWithBackwardChunks(x_TD, sizes, work, {
        sendToExperts: (x, own) => sendToExperts(x, order, { ...own, priority }),
        rechunk,
        returnRows: (outputs, own) => returnRows(outputs, { ...own, priority }),
      });
      return scope("inverse-order", () => fromRows(returned_RD, byExpert, sizes.numTokens));
    },
  };
};
