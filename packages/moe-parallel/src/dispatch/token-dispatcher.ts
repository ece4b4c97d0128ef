// Shapes: T tokens of this rank, D width of a token, E experts in the order of their places, e experts of this rank, K
// choices of a token, C slots of an expert for tokens of one rank, S rows that this rank's experts see of a chunk.
import type { Tensor } from "@skein/tensor-core";
import type { Order } from "../order.ts";

export interface DispatchSizes {
  /** E, a multiple of the ranks along the axis. */
  readonly numExperts: number;
  /** T */
  readonly numTokens: number;
  /** K: most choices of a token. */
  readonly numChoices: number;
  /** Most of them that go to one rank. Default: K. */
  readonly choicesPerRank?: number;
  /** C */
  readonly slots: number;
  /** Axis of the mesh over which experts lie spread. */
  readonly axis: string;
  /** In how many chunks they travel, at most: one travels while experts work on another. */
  readonly numChunks: number;
}

/** Rows of one chunk where their experts are. */
export interface ExpertRows {
  /** Those of the first expert of this rank, then those of the second, …; of an expert by source rank, then by slot. */
  readonly rows_SD: Tensor;
  /** i32, rows of each. */
  readonly counts_e: Tensor;
}

/** What experts do, in a pass whose backward part has chunks of its own. */
export interface ExpertWork<Params> {
  readonly params: Params;
  /** @returns f32 [S, D]. */
  readonly apply: (params: Params, rows: ExpertRows) => Tensor;
  /** In how many chunks cotangents travel, at most. */
  readonly backwardChunks: number;
}

/** Rows that have reached their experts, and what brings them back. */
export interface Dispatched<Metadata> {
  readonly chunks: readonly ExpertRows[];
  /** What `combine` needs to bring rows back: a tree of tensors. */
  readonly metadata: Metadata;
}

/**
 * How tokens travel to the ranks of their experts, and back. Whatever way they take, experts see the same bits in the
 * same order.
 *
 * Nodes are in scopes that name their stage: `order`, `dispatch`; `combine`, `inverse-order`.
 */
export interface TokenDispatcher<Metadata = unknown> {
  /** @param x_TD f32. */
  dispatch(x_TD: Tensor, order: Order, sizes: DispatchSizes): Dispatched<Metadata>;
  /**
   * @param done of each chunk what its experts gave, f32 [S, D].
   * @returns of each token the weighted sum of what its experts gave, f32 [T, D]; 0 where it has none.
   */
  combine(done: readonly Tensor[], metadata: Metadata, sizes: DispatchSizes): Tensor;
  /**
   * As `dispatch`, experts and `combine`, but for the chunks of backward. Absent where rows of another chunk lie in
   * another order, so that they would have to travel again.
   *
   * @returns as `combine`.
   */
  throughApart?<Params>(x_TD: Tensor, order: Order, sizes: DispatchSizes, work: ExpertWork<Params>): Tensor;
}
