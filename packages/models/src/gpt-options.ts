// Shapes: D width, V vocabulary, F hidden width of the feed-forward part, T positions.
import type { Sharding, Tensor } from "@skein/tensor-core";
import type { RunContext } from "./model.ts";
import type { NormParams as LayerNormParams, RmsNormParams } from "./normalisation.ts";
import type { Recompute } from "./recompute.ts";
import type { TensorParallel } from "./tensor-parallel.ts";

/** Sizes of a GPT, and which of the known blocks it is made of. */
export interface GptOptions {
  /** Number of tokens; 256 for bytes, the default. */
  readonly vocabulary?: number;
  /** Most positions that a sequence may have; learned positions need it, rotary ones do not. */
  readonly contextLength: number;
  /** D */
  readonly width: number;
  readonly numLayers: number;
  /** H; must divide the width. */
  readonly numHeads: number;
  /** Default: rotary. */
  readonly positions?: "rotary" | "learned";
  /** Default: rms. */
  readonly norm?: "rms" | "layer";
  /** Default: gelu. */
  readonly activation?: "gelu" | "swiglu";
  /**
   * F. Default: 4D for gelu; for swiglu, which has three matrices instead of two, 8D/3 rounded up to a multiple of 8.
   */
  readonly hidden?: number;
  /** Use the embedding as the matrix of the logits too. Default: true. */
  readonly tiedHead?: boolean;
  /** Share of the embedding's and of each branch's values dropped while training. Default: 0. */
  readonly dropoutRate?: number;
  /**
   * `blocks` keeps what enters each block for the backward pass and computes the rest of it again: see `checkpoint`.
   * Default: none.
   */
  readonly recompute?: Recompute;
  /** What takes the place of the feed-forward part in some blocks. Default: nothing. */
  readonly experts?: GptExperts;
  /**
   * Ranks that have the same samples and share the matrices of the blocks out: each has P-th of the heads and of F, and
   * the loss of a P-th of the positions. They must divide all three. Default: every rank has everything.
   */
  readonly tensor?: TensorParallel;
}

/** A layer in place of a feed-forward part, from [B, T, D] to the same. It may have a state, and add to the loss. */
export interface FeedForwardLayer<Params = unknown, State = unknown> {
  /**
   * Whether the loss of a part of a batch needs `sums` of the whole batch, which `apply` is then given as
   * `context.whole`. Default: false.
   */
  readonly needsWhole?: boolean;
  init(key: Tensor): { readonly params: Params; readonly state: State };
  /**
   * State and report after one more part of a batch, as after all parts at once. Default: each part begins with the
   * state that the part before has left, and the report is that of the last part.
   *
   * @param parts `numEarlier`: number of earlier parts, f32 scalar.
   */
  joinParts?(parts: {
    readonly before: State;
    readonly earlier: FeedForwardApplied<State>;
    readonly own: FeedForwardApplied<State>;
    readonly numEarlier: Tensor;
  }): FeedForwardApplied<State>;
  apply(
    params: Params,
    state: State,
    x: Tensor,
    context: FeedForwardContext,
  ): readonly [y: Tensor, state: State, report: FeedForwardReport];
}

/** How a layer is being run. */
export interface FeedForwardContext extends Omit<RunContext, "whole"> {
  /** For a part of a batch: `sums` over all its parts, and their number. */
  readonly whole?: { readonly sums: object; readonly numParts: number };
}

/** State and report of a layer after some tokens. */
export interface FeedForwardApplied<State> {
  readonly state: State;
  readonly report: Omit<FeedForwardReport, "choices_TK">;
}

export interface FeedForwardReport {
  /** f32 [], added to the loss while training. */
  readonly loss: Tensor;
  /** f32, numbers worth following. */
  readonly figures: object;
  /** Sums over tokens, f32 by name, that `loss` needs of a whole batch. Absent: none. */
  readonly sums?: object;
  /** i32 [T, K]: which experts each token chose, where it is a choice. Not kept. */
  readonly choices_TK?: Tensor;
}

export interface GptExperts {
  /** Such as `moeLayer` of @skein/moe-parallel. */
  readonly layer: FeedForwardLayer;
  /** Blocks from one that has it to the next; the last block of so many has it. 1 for all blocks. */
  readonly every: number;
  /** How parameters of the layer are shared out, by path in its tree. Default: every rank has everything. */
  readonly sharding?: Sharding;
  /**
   * With tensor-parallel ranks: whether the layer takes a rank's own positions, with a key of its own, or those of all
   * ranks of the axis, the same with the same key on each of them. Default: own.
   */
  readonly positions?: "own" | "all";
}

/** What a layer of experts was left with by the last step. */
export interface GptExpertsState {
  readonly own: unknown;
  readonly report: Omit<FeedForwardReport, "choices_TK">;
}

export interface GptState {
  /** Of the blocks that have experts, in order. */
  readonly experts?: readonly GptExpertsState[];
}

/** The shift of layer normalisation only. */
export type GptNormParams = RmsNormParams & Partial<LayerNormParams>;

/** With tensor-parallel ranks a rank has columns of query, key, value, up and gate, rows of output and down. */
export interface GptBlockParams {
  readonly attentionNorm: GptNormParams;
  readonly query_DD: Tensor;
  readonly key_DD: Tensor;
  readonly value_DD: Tensor;
  readonly output_DD: Tensor;
  readonly feedForwardNorm: GptNormParams;
  /** In place of the three matrices below, in blocks that have experts. */
  readonly experts?: unknown;
  readonly up_DF?: Tensor;
  /** SwiGLU only. */
  readonly gate_DF?: Tensor;
  readonly down_FD?: Tensor;
}

/** Parameters of a GPT; letters at a name's end are its shape. */
export interface GptParams {
  readonly embedding_VD: Tensor;
  /** Learned positions only. */
  readonly positions_TD?: Tensor;
  readonly blocks: readonly GptBlockParams[];
  readonly finalNorm: GptNormParams;
  /** Untied head only. */
  readonly head_DV?: Tensor;
}
