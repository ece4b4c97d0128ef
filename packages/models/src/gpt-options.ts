// Shapes: D width, V vocabulary, F hidden width of the feed-forward part, T positions.
import type { Sharding, Tensor } from "@skein/tensor-core";
import type { RunContext } from "./model.ts";
import type { NormParams as LayerNormParams, RmsNormParams } from "./normalisation.ts";
import type { Recompute } from "./recompute.ts";
import type { TensorParallel } from "./tensor-parallel.ts";

/** Sizes and block types of a GPT. */
export interface GptOptions {
  /** Number of tokens. Default: 256, for bytes. */
  readonly vocabulary?: number;
  /** Maximum sequence length; required by learned positions, not by rotary ones. */
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
  /** Whether the embedding is also the matrix of the logits. Default: true. */
  readonly tiedHead?: boolean;
  /** Dropout rate of the embedding and of each branch during training. Default: 0. */
  readonly dropoutRate?: number;
  /**
   * `blocks` stores only the input of each block for the backward pass and recomputes the rest: see `checkpoint`.
   * Default: none.
   */
  readonly recompute?: Recompute;
  /** Layers of experts that replace the feed-forward part in some blocks. Default: none. */
  readonly experts?: GptExperts;
  /**
   * Tensor parallelism: ranks with the same samples shard the matrices of the blocks. Each of the P ranks has 1/P of
   * the heads and of F, and the loss of 1/P of the positions. P must divide all three. Absent: every rank has all
   * parameters.
   */
  readonly tensor?: TensorParallel;
}

/**
 * A layer that replaces a feed-forward part, [B, T, D] to [B, T, D]. The layer may have a state and add to the loss.
 */
export interface FeedForwardLayer<Params = unknown, State = unknown> {
  /**
   * Whether the loss of a microbatch needs `sums` over the whole batch; `apply` then receives them in `context.whole`.
   * Default: false.
   */
  readonly needsWhole?: boolean;
  init(key: Tensor): { readonly params: Params; readonly state: State };
  /**
   * Returns state and report after one more microbatch, equal to those after all microbatches at once. Absent: each
   * microbatch starts with the state of the previous one, and the report is that of the last one.
   *
   * @param parts `numEarlier`: number of earlier microbatches, f32 scalar.
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

/** Run options of a layer. */
export interface FeedForwardContext extends Omit<RunContext, "whole"> {
  /** For a microbatch: `sums` over all microbatches of the batch, and their number. */
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
  /** Metrics to log, f32. */
  readonly figures: object;
  /** Sums over tokens, f32 by name, that `loss` needs of the whole batch. Absent: none. */
  readonly sums?: object;
  /** Expert choices of each token, i32 [T, K]. Absent: the layer does not choose. Not stored. */
  readonly choices_TK?: Tensor;
}

export interface GptExperts {
  /** Layer of experts, such as `moeLayer` of @skein/moe-parallel. */
  readonly layer: FeedForwardLayer;
  /** Number of blocks per layer of experts; the last block of each group has the experts. 1: all blocks. */
  readonly every: number;
  /** Sharding of the layer's parameters, by path in its tree. Default: every rank has all parameters. */
  readonly sharding?: Sharding;
  /**
   * With tensor parallelism: whether the layer receives the rank's own positions, with a different key per rank, or the
   * positions of all ranks of the axis, with the same key on each rank. Default: own.
   */
  readonly positions?: "own" | "all";
}

/** State and report of a layer of experts after the last step. */
export interface GptExpertsState {
  readonly own: unknown;
  readonly report: Omit<FeedForwardReport, "choices_TK">;
}

export interface GptState {
  /** States of the blocks with experts, in order. */
  readonly experts?: readonly GptExpertsState[];
}

/** Gain, and the shift if the norm is layer normalization. */
export type GptNormParams = RmsNormParams & Partial<LayerNormParams>;

/**
 * Parameters of a block. With tensor parallelism a rank has columns of query, key, value, up and gate, and rows of
 * output and down.
 */
export interface GptBlockParams {
  readonly attentionNorm: GptNormParams;
  readonly query_DD: Tensor;
  readonly key_DD: Tensor;
  readonly value_DD: Tensor;
  readonly output_DD: Tensor;
  readonly feedForwardNorm: GptNormParams;
  /** Parameters of the experts, instead of the three matrices below, in blocks with experts. */
  readonly experts?: unknown;
  readonly up_DF?: Tensor;
  /** SwiGLU only. */
  readonly gate_DF?: Tensor;
  readonly down_FD?: Tensor;
}

/** Parameters of a GPT. Letters at the end of a name are its shape. */
export interface GptParams {
  readonly embedding_VD: Tensor;
  /** Learned positions only. */
  readonly positions_TD?: Tensor;
  readonly blocks: readonly GptBlockParams[];
  readonly finalNorm: GptNormParams;
  /** Untied head only. */
  readonly head_DV?: Tensor;
}
