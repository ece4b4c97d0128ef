// Shapes: D width of a token, E experts in the order of their places, e experts of this rank, C slots of an expert for
// tokens of one rank, R rows of this rank's tokens, S rows that this rank's experts see.
import type { Tensor } from "@skein/tensor-core";
import type { RowLayout } from "../order.ts";

export interface DispatchSizes {
  /** E, a multiple of the ranks along the axis. */
  readonly numExperts: number;
  /** Tokens of this rank. */
  readonly numTokens: number;
  /** Most choices of a token. */
  readonly numChoices: number;
  /** C */
  readonly slots: number;
  /** Axis of the mesh over which experts lie spread. */
  readonly axis: string;
}

/** Rows where their experts are. */
export interface Dispatched<Metadata> {
  /** Rows of the first expert of this rank, then those of the second, … */
  readonly rows_SD: Tensor;
  /** i32, rows of each. */
  readonly counts_e: Tensor;
  /** What `combine` needs to bring rows back. */
  readonly metadata: Metadata;
}

/** How rows travel to the ranks of their experts, and back. */
export interface TokenDispatcher<Metadata = unknown> {
  /** @param kept_E i32, rows of each expert, each at most C. */
  layout(kept_E: Tensor, sizes: DispatchSizes): RowLayout;
  dispatch(rows_RD: Tensor, kept_E: Tensor, sizes: DispatchSizes): Dispatched<Metadata>;
  /** @returns rows as they were before `dispatch`, [R, D]. */
  combine(rows_SD: Tensor, metadata: Metadata, sizes: DispatchSizes): Tensor;
}
