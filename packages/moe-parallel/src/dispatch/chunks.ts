// Shapes: T tokens of this rank, t tokens per chunk, E experts, K choices per token, N = T·K entries.
import {
  add,
  cumsum,
  full,
  gather,
  less,
  reshape,
  scatterAdd,
  slice,
  subtract,
  type Tensor,
  where,
} from "@skein/tensor-core";
import { countPerExpert } from "../load.ts";
import type { Order } from "../order.ts";
import type { DispatchSizes } from "./token-dispatcher.ts";

/** Half-open range of consecutive indices, from `begin` up to `end`. */
export interface ChunkRange {
  readonly begin: number;
  readonly end: number;
}

/**
 * Splits `count` items into chunks of ⌈count / numChunks⌉ items. The last chunk may be smaller, and chunks are not
 * padded. Returns fewer chunks if fewer are enough, and never an empty chunk.
 */
export const chunkRanges = (count: number, numChunks: number): readonly ChunkRange[] => {
  const size = Math.ceil(count / numChunks);
  return Array.from({ length: Math.ceil(count / size) }, (_, i) => ({
    begin: i * size,
    end: Math.min((i + 1) * size, count),
  }));
};

/** Returns the exclusive cumulative sum along the last dimension. */
export const before = (counts: Tensor): Tensor => subtract(cumsum(counts), counts);

/** A chunk of a rank's tokens, with the slot assignment (order) and the dispatch sizes of this chunk. */
export interface TokenChunk {
  readonly x_TD: Tensor;
  readonly order: Order;
  readonly sizes: DispatchSizes;
}

/**
 * Returns the slot assignment (order) for a range of tokens, with slots renumbered without gaps. `first_E`: index of
 * each expert's first slot if the slots of all experts are concatenated.
 */
const orderOf = (order: Order, first_E: Tensor, { begin, end }: ChunkRange): Order => {
  const own = (entries_TK: Tensor): Tensor => slice(entries_TK, [begin], [end]);
  const numEntries = order.experts_TK.shape[0]! * order.experts_TK.shape[1]!;
  const [experts_tK, slots_tK] = [own(order.experts_TK), own(order.slots_TK)];
  const hasNone_tK = less(experts_tK, 0);
  // With the slots of all experts concatenated: a mask of this chunk's slots, and the number of this chunk's slots
  // before each slot.
  const positions_tK = where(hasNone_tK, numEntries, add(gather(first_E, experts_tK, { outside: "zero" }), slots_tK));
  const ones_n = full([(end - begin) * order.experts_TK.shape[1]!], 1, "i32");
  const isOwn_N = scatterAdd(full([numEntries], 0, "i32"), reshape(positions_tK, [-1]), ones_n);
  const kept_E = countPerExpert(experts_tK, first_E.shape[0]!);
  const slots = subtract(
    gather(before(isOwn_N), positions_tK, { outside: "zero" }),
    gather(before(kept_E), experts_tK, { outside: "zero" }),
  );
  return {
    experts_TK: experts_tK,
    slots_TK: where(hasNone_tK, -1, slots),
    weights_TK: own(order.weights_TK),
    kept_E,
    greatestLoad: order.greatestLoad,
  };
};

/**
 * Splits tokens into chunks with separate slots. The slots of a chunk's entries are renumbered without gaps, in the
 * same order.
 *
 * Cost: a few passes over N numbers per chunk; no cost for a single chunk.
 */
export const cutTokens = (x_TD: Tensor, order: Order, sizes: DispatchSizes): readonly TokenChunk[] => {
  const ranges = chunkRanges(sizes.numTokens, sizes.numChunks);
  if (ranges.length === 1) return [{ x_TD, order, sizes }];
  const first_E = before(order.kept_E);
  return ranges.map(({ begin, end }) => ({
    x_TD: slice(x_TD, [begin], [end]),
    order: orderOf(order, first_E, { begin, end }),
    sizes: { ...sizes, numTokens: end - begin, slots: Math.min(sizes.slots, end - begin) },
  }));
};
