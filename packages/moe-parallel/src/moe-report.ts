// Shapes: T tokens of this rank, E experts, K choices of a token.
import type { Tensor } from "@skein/tensor-core";
import type { GateFigures } from "./gates/gate.ts";
import type { TokenSums } from "./losses/auxiliary-loss.ts";
import type { LoadHistory } from "./routing/load-history.ts";

/** State of a layer between steps, equal on all ranks. */
export interface MoeState<GateState> extends LoadHistory {
  readonly gate: GateState;
  /** Position of each expert, i32. An input of the step, so moving experts needs no other graph; see `moveExperts`. */
  readonly placeOf_E: Tensor;
}

export interface MoeFigures extends GateFigures {
  /** Share of the choices of all ranks without a slot, f32 []. */
  readonly droppedShare: Tensor;
  /**
   * Share of rows that send a token to a rank that receives the same token in another row, over all ranks, f32 []: the
   * saving of a dispatcher that sends each token once per rank. 1 − 1/K if one rank has all experts.
   */
  readonly duplicationRate: Tensor;
  /** Maximum number of one rank's tokens that chose one expert, f32 []: the smallest bound that drops no entry. */
  readonly greatestLoad: Tensor;
}

/** Outputs of a layer in addition to its activations. */
export interface MoeReport {
  /** Sum of the gate's auxiliary losses, to add to the loss, f32 []. */
  readonly loss: Tensor;
  readonly figures: MoeFigures;
  /** Sums over these tokens that auxiliary losses need over a whole batch. */
  readonly sums: TokenSums;
  /** Experts of the tokens that this rank gates, i32 [T, K]; −1 for no choice. Absent for a mixture. */
  readonly choices_TK?: Tensor;
}

/** State and report of a layer after some tokens. */
export interface MoeLayerApplied<State> {
  readonly state: State;
  readonly report: Pick<MoeReport, "loss" | "figures" | "sums">;
}

/** Results of several parts of a batch, each computed from the same state. */
export interface MoeLayerParts<State> {
  /** State before the first part. */
  readonly before: State;
  /** Combined result of all earlier parts. */
  readonly earlier: MoeLayerApplied<State>;
  readonly own: MoeLayerApplied<State>;
  /** Number of earlier parts, f32 scalar. */
  readonly numEarlier: Tensor;
}
