// Shapes: T tokens of this rank, D token width, E experts in placement order, e experts of this rank, K choices per
// token, C slots per expert for the tokens of one rank, S rows of a chunk that this rank's experts process.
import type { Tensor } from "@skein/tensor-core";
import type { Order } from "../order.ts";

export interface DispatchSizes {
  /** E, number of experts, divisible by the number of ranks along the axis. */
  readonly numExperts: number;
  /** T, number of tokens. */
  readonly numTokens: number;
  /** K, maximum number of choices per token. */
  readonly numChoices: number;
  /** Maximum number of a token's choices on one rank. Default: K. */
  readonly choicesPerRank?: number;
  /** C, number of slots per expert. */
  readonly slots: number;
  /** Mesh axis over which experts are distributed. */
  readonly axis: string;
  /** Maximum number of chunks. One chunk is sent while experts process another chunk. */
  readonly numChunks: number;
}

/** Rows of one chunk on the ranks of their experts. */
export interface ExpertRows {
  /** Rows, ordered by local expert, then by source rank, then by slot. */
  readonly rows_SD: Tensor;
  /** Number of rows per expert, i32. */
  readonly counts_e: Tensor;
}

/** Computation of the experts, for passes with a separate number of backward chunks. */
export interface ExpertWork<Params> {
  readonly params: Params;
  /** Applies the experts. @returns f32 [S, D]. */
  readonly apply: (params: Params, rows: ExpertRows) => Tensor;
  /** Maximum number of chunks in which cotangents are sent. */
  readonly backwardChunks: number;
}

/** Rows on the ranks of their experts, with the data for `combine`. */
export interface Dispatched<Metadata> {
  readonly chunks: readonly ExpertRows[];
  /** Data that `combine` needs to send rows back: a tree of tensors. */
  readonly metadata: Metadata;
}

/**
 * Sends tokens to the ranks of their experts, and sends results back. With every dispatcher, experts process bitwise
 * identical rows in the same order.
 *
 * Graph nodes are in scopes named after their stage: `order`, `dispatch`, `combine`, `inverse-order`.
 */
export interface TokenDispatcher<Metadata = unknown> {
  /** Sends tokens to the ranks of their experts. @param x_TD f32. */
  dispatch(x_TD: Tensor, order: Order, sizes: DispatchSizes): Dispatched<Metadata>;
  /**
   * Sends results back to the ranks of their tokens.
   * @param outputs expert outputs of each chunk, f32 [S, D].
   * @returns the weighted sum of expert outputs per token, f32 [T, D]; 0 for a token without experts.
   */
  combine(outputs: readonly Tensor[], metadata: Metadata, sizes: DispatchSizes): Tensor;
  /**
   * Runs `dispatch`, the experts and `combine`, with a separate number of chunks in backward. Absent if a different
   * number of chunks would change the order of rows, so that rows would have to be sent again.
   *
   * @returns the same value as `combine`.
   */
  runWithBackwardChunks?<Params>(x_TD: Tensor, order: Order, sizes: DispatchSizes, work: ExpertWork<Params>): Tensor;
}
