// Shapes: D width, V vocabulary, F hidden width of the feed-forward layers, T positions.
import type { Sharding, Tensor } from "@skein/tensor-core";
import type { RunContext } from "./model.ts";
import type { NormParams as LayerNormParams, RmsNormParams } from "./normalisation.ts";
import type { TensorParallel } from "./tensor-parallel.ts";
import type { EmbeddingParams } from "./token-embedding.ts";
import type { BlockParams } from "./transformer-block.ts";
import type { TransformerOptions } from "./transformer-sizes.ts";

/** Sizes and block types of a GPT. */
export interface GptOptions extends TransformerOptions {
  /** Number of tokens in the vocabulary. Default: 256, one token per byte value. */
  readonly vocabulary?: number;
  /** Maximum sequence length. Learned positions need this limit; rotary positions do not. */
  readonly contextLength: number;
  /** Position encoding. Default: rotary. */
  readonly positions?: "rotary" | "learned";
  /** Type of normalization. Default: rms. */
  readonly norm?: "rms" | "layer";
  /** Activation of the feed-forward layer. Default: gelu. */
  readonly activation?: "gelu" | "swiglu";
  /**
   * F, hidden width of the feed-forward layer. Default for gelu: 4D. Default for swiglu, which has three matrices
   * instead of two: 8D/3 rounded up to a multiple of 8.
   */
  readonly hidden?: number;
  /** Whether the output head uses the embedding matrix (weight tying). Default: true. */
  readonly tiedHead?: boolean;
  /** Dropout rate of the embedding and of the output of each branch during training. Default: 0. */
  readonly dropoutRate?: number;
  /** Expert layers that replace the feed-forward layer in some blocks. Default: no expert layers. */
  readonly experts?: GptExperts;
  /**
   * Tensor parallelism: ranks with the same samples shard the matrices of each block. Each of P ranks has 1/P of the
   * heads and of the hidden width F, and computes the loss of 1/P of the positions. The number of heads, F and the
   * number of positions must be divisible by P. Absent: every rank has all parameters.
   */
  readonly tensor?: TensorParallel;
}

/**
 * A layer that replaces a feed-forward layer and maps [B, T, D] to [B, T, D]. The layer may have a state and may add a
 * term to the loss.
 */
export interface FeedForwardLayer<Params = unknown, State = unknown> {
  /**
   * Whether the loss of a microbatch needs `sums` over the whole batch. If so, `apply` receives `sums` in
   * `context.whole`. Default: false.
   */
  readonly needsWhole?: boolean;
  init(key: Tensor): { readonly params: Params; readonly state: State };
  /**
   * Returns the state and report after one more microbatch, equal to the state and report after processing all
   * microbatches as one batch. Absent: each microbatch starts with the state of the previous microbatch, and the report
   * of the last microbatch is used.
   *
   * @param parts States and reports to join. `before` is the state before the batch, and `numEarlier` the number of
   * earlier microbatches, f32 scalar.
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

/** Options of one call of a layer. */
export interface FeedForwardContext extends Omit<RunContext, "whole"> {
  /**
   * `sums` over all microbatches of the batch, and the number of microbatches. Absent: the batch is not split into
   * microbatches.
   */
  readonly whole?: { readonly sums: object; readonly numParts: number };
}

/** State of a feed-forward layer after a call, and the layer's report, such as its loss term and metrics. */
export interface FeedForwardApplied<State> {
  readonly state: State;
  readonly report: Omit<FeedForwardReport, "choices_TK">;
}

export interface FeedForwardReport {
  /** Loss term that is added to the training loss, f32 []. */
  readonly loss: Tensor;
  /** Metrics to log, f32, by name. */
  readonly figures: object;
  /**
   * Sums over tokens, f32, by name. The `loss` of the whole batch is computed from these sums. Absent: `loss` needs no
   * sums.
   */
  readonly sums?: object;
  /** Experts chosen by each token, i32 [T, K]; not part of the state. Absent: the layer does not choose experts. */
  readonly choices_TK?: Tensor;
}

export interface GptExperts {
  /** Expert layer, such as `moeLayer` of @skein/moe-parallel. */
  readonly layer: FeedForwardLayer;
  /**
   * Interval, in blocks, between blocks with experts. The last of every `every` blocks has an expert layer. 1: all
   * blocks.
   */
  readonly every: number;
  /** Sharding of the layer's parameters, by path in their tree. Default: every rank has all parameters. */
  readonly sharding?: Sharding;
  /**
   * Positions that the layer receives with tensor parallelism. "own": the rank's own positions, with a different key
   * per rank. "all": the positions of all ranks of the axis, with the same key on each rank. Default: own.
   */
  readonly positions?: "own" | "all";
}

/** State and report of an expert layer after the latest step. */
export interface GptExpertsState {
  readonly own: unknown;
  readonly report: Omit<FeedForwardReport, "choices_TK">;
}

export interface GptState {
  /** States of the expert layers, in block order. Absent: the model has no experts. */
  readonly experts?: readonly GptExpertsState[];
}

/** Parameters of a norm: gain, and shift for layer normalization only. */
export type GptNormParams = RmsNormParams & Partial<LayerNormParams>;

/**
 * Parameters of a block. With tensor parallelism each rank has columns of query, key, value, up and gate, and rows of
 * output and down.
 */
export interface GptBlockParams extends BlockParams<GptNormParams> {
  readonly query_DD: Tensor;
  readonly key_DD: Tensor;
  readonly value_DD: Tensor;
  readonly output_DD: Tensor;
  /**
   * Parameters of the expert layer. A block with experts has no `up_DF`, `gate_DF` and `down_FD`. Absent: a block
   * without experts.
   */
  readonly experts?: unknown;
  readonly up_DF?: Tensor;
  /** Gate matrix of SwiGLU. Absent for GELU. */
  readonly gate_DF?: Tensor;
  readonly down_FD?: Tensor;
}

/** Parameters of a GPT. The letters at the end of a name are the tensor's shape. */
export interface GptParams extends EmbeddingParams {
  readonly blocks: readonly GptBlockParams[];
  readonly finalNorm: GptNormParams;
}
