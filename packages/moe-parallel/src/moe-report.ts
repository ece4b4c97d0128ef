// Shapes: T tokens of this rank, E experts, K choices per token.
import type { Tensor } from "@skein/tensor-core";
import type { GateFigures } from "./gates/gate.ts";
import type { TokenSums } from "./losses/auxiliary-loss.ts";
import type { LoadHistory } from "./routing/load-history.ts";

/** State of a layer between steps, equal on all ranks. */
export interface MoeState<GateState> extends LoadHistory {
  readonly gate: GateState;
  /**
   * Position of each expert, i32. An input of the step, so experts can be moved without a new graph; see `moveExperts`.
   */
  readonly placeOf_E: Tensor;
}

export interface MoeFigures extends GateFigures {
  /** Fraction of expert choices that are dropped because the expert has no free slot, over all ranks, f32 []. */
  readonly droppedShare: Tensor;
  /**
   * Fraction of rows that repeat a token of another row on the same rank, over all ranks, f32 []. A dispatcher that
   * sends each token once per rank saves this fraction of rows. 1 − 1/K if one rank has all experts.
   */
  readonly duplicationRate: Tensor;
  /**
   * Largest number of tokens of one rank that chose the same expert, f32 []. This is the smallest `bound` of
   * `capacityByMaximum` with which no entry is dropped.
   */
  readonly greatestLoad: Tensor;
}

/** Outputs of a layer other than its activations. */
export interface MoeReport {
  /** Sum of the gate's auxiliary losses, to add to the loss, f32 []. */
  readonly loss: Tensor;
  readonly figures: MoeFigures;
  /**
   * Sums over the tokens of this call. If the tokens are a part of a batch, the sums of all parts are added up for the
   * auxiliary losses; see `WholeBatch`.
   */
  readonly sums: TokenSums;
  /** Chosen experts of the tokens that this rank gates, i32 [T, K]; −1 for no choice. Absent for soft routing. */
  readonly choices_TK?: Tensor;
}

/** State and report of a layer after it has processed a batch, or the parts of a batch so far. */
export interface MoeLayerApplied<State> {
  readonly state: State;
  readonly report: Pick<MoeReport, "loss" | "figures" | "sums">;
}

/**
 * States and reports of a layer for several parts of a batch, as input of `joinMoeParts`. All parts start from the same
 * state.
 */
export interface MoeLayerParts<State> {
  /** State before the first part. */
  readonly before: State;
  /** Combined result of all earlier parts. */
  readonly earlier: MoeLayerApplied<State>;
  readonly own: MoeLayerApplied<State>;
  /** Number of earlier parts, f32 scalar. */
  readonly numEarlier: Tensor;
}
