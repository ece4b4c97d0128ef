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
  /** Share of choices without a slot, over all ranks, f32 []. */
  readonly droppedShare: Tensor;
  /**
   * Share of rows whose token the same rank also receives in another row, over all ranks, f32 []. This is the saving of
   * a dispatcher that sends each token once per rank. 1 − 1/K if one rank has all experts.
   */
  readonly duplicationRate: Tensor;
  /**
   * Largest number of tokens of one rank that chose the same expert, f32 []. This is the smallest bound with which no
   * entry is dropped.
   */
  readonly greatestLoad: Tensor;
}

/** Outputs of a layer other than its activations. */
export interface MoeReport {
  /** Sum of the gate's auxiliary losses, to add to the loss, f32 []. */
  readonly loss: Tensor;
  readonly figures: MoeFigures;
  /** Sums over these tokens that auxiliary losses need over a full batch. */
  readonly sums: TokenSums;
  /** Chosen experts of the tokens that this rank gates, i32 [T, K]; −1 for no choice. Absent for a mixture. */
  readonly choices_TK?: Tensor;
}

/** State and report of a layer after it has processed a batch, or the parts of a batch so far. */
export interface MoeLayerApplied<State> {
  readonly state: State;
  readonly report: Pick<MoeReport, "loss" | "figures" | "sums">;
}

/** Results for several parts of a batch, all computed from the same state. */
export interface MoeLayerParts<State> {
  /** State before the first part. */
  readonly before: State;
  /** Combined result of all earlier parts. */
  readonly earlier: MoeLayerApplied<State>;
  readonly own: MoeLayerApplied<State>;
  /** Number of earlier parts, f32 scalar. */
  readonly numEarlier: Tensor;
}
