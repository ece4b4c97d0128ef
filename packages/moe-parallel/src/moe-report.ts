// Shapes: T tokens of this rank, E experts, K choices of a token.
import type { Tensor } from "@skein/tensor-core";
import type { GateFigures } from "./gates/gate.ts";
import type { TokenSums } from "./losses/auxiliary-loss.ts";
import type { LoadMemory } from "./routing/load-memory.ts";

/** What a layer keeps from step to step; the same on all ranks. */
export interface MoeState<GateState> extends LoadMemory {
  readonly gate: GateState;
  /** i32, place of each expert. A step reads it: experts that move need no other graph, see `moveExperts`. */
  readonly placeOf_E: Tensor;
}

export interface MoeFigures extends GateFigures {
  /** f32 []: share of the choices that found no slot, of all ranks. */
  readonly droppedShare: Tensor;
  /**
   * f32 []: share of the rows that carry a token to a rank where another of its rows goes, of all ranks: what a
   * dispatcher saves that sends tokens once. 1 − 1/K where one rank has all experts.
   */
  readonly duplicationRate: Tensor;
  /** f32 []: most tokens of one rank that chose one expert: the bound that drops nothing. */
  readonly greatestLoad: Tensor;
}

/** What a layer says beside its output. */
export interface MoeReport {
  /** f32 []: sum of the gate's auxiliary losses, to be added to the loss. */
  readonly loss: Tensor;
  readonly figures: MoeFigures;
  /** Sums that auxiliary losses need of a whole batch, of these tokens. */
  readonly sums: TokenSums;
  /** i32 [T, K]: experts of the tokens that this rank gates, −1 where there is no choice. Absent for a mixture. */
  readonly choices_TK?: Tensor;
}

/** State and report of a layer after some tokens. */
export interface MoeLayerApplied<State> {
  readonly state: State;
  readonly report: Pick<MoeReport, "loss" | "figures" | "sums">;
}

/** What parts of a batch have left, each computed from the same state. */
export interface MoeLayerParts<State> {
  /** State before the first part. */
  readonly before: State;
  /** What all earlier parts have left, joined. */
  readonly earlier: MoeLayerApplied<State>;
  readonly own: MoeLayerApplied<State>;
  /** Number of earlier parts, f32 scalar. */
  readonly numEarlier: Tensor;
}
