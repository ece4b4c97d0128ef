// Shapes: B batch, T positions, D width, H heads, F hidden width of the feed-forward layers, V vocabulary.
import { add, cast, embedding, type EmptyState, foldIn, gelu, scope, slice, type Tensor } from "@skein/tensor-core";
import { applyFusedAttention, type FusedAttentionParams } from "./attention-layer.ts";
import { initEmbedding } from "./layers.ts";
import { labelledModel, type Model } from "./model.ts";
import { requireSizes } from "./require-sizes.ts";
import { applyLayerNorm, initLayerNorm, type NormParams } from "./normalisation.ts";
import { positionsOf } from "./past.ts";
import { initProjection } from "./projection.ts";
import type { Recompute } from "./recompute.ts";
import { initTokens, tokenLogits, type TokenParams } from "./token-head.ts";
import { applyTransformerBlocks, initTransformerBlock, type TransformerBlockParams } from "./transformer-block.ts";
import { requireDivisor, requireTokens } from "./transformer-sizes.ts";

/** Sizes of a GPT-2. */
export interface Gpt2Options {
  /** V, number of tokens in the vocabulary. */
  readonly vocabulary: number;
  /** Maximum number of positions in a sequence. */
  readonly contextLength: number;
  /** D, width of the hidden states. */
  readonly width: number;
  readonly numLayers: number;
  /** H, number of attention heads; must divide the width. */
  readonly numHeads: number;
  /** F, hidden width of the feed-forward layers. Default: 4D. */
  readonly hidden?: number;
  /** Activation function of the feed-forward layers. Default: GELU in the tanh approximation. */
  readonly activation?: (x: Tensor) => Tensor;
  /** ε of the layer norms. Default: 1e-5. */
  readonly epsilon?: number;
  /** Whether the output head uses the embedding matrix (weight tying). Default: true. */
  readonly tiedHead?: boolean;
  /**
   * Activation recomputation. `blocks`: the forward pass stores only the input of each block, and the backward pass
   * recomputes the block (see `checkpoint`). Default: none.
   */
  readonly recompute?: Recompute;
}

export interface Gpt2Params extends TokenParams {
  readonly positions_TD: Tensor;
  readonly blocks: readonly TransformerBlockParams<FusedAttentionParams>[];
  readonly finalNorm: NormParams;
}

/**
 * GPT-2 as published: learned positions, layer norm before each branch, causal attention with one matrix for queries,
 * keys and values, biases in all layers except the head. Inputs i32 or u8 [B, T]; labels [B, T] are the inputs shifted
 * by one position. To train a decoder from scratch, use `gpt`, which has more options.
 *
 * Parameters: `VD + TD + L·(4D² + 2DF + 9D + F) + 2D`; 124,439,808 for the small model. Forward flops per token: about
 * twice the matrix parameters, plus `4·T·D` per layer for attention.
 *
 * @throws ArgumentError if sizes are not positive integers, or the heads do not divide the width.
 * Source: Radford et al. 2019.
 */
export const gpt2 = (options: Gpt2Options): Model<Gpt2Params, EmptyState> => {
  const {
    vocabulary,
    contextLength,
    width,
    numLayers,
    numHeads,
    hidden = 4 * width,
    activation = (x) => gelu(x, { approximate: "tanh" }),
    epsilon = 1e-5,
    tiedHead = true,
    recompute = "none",
  } = options;
  requireSizes("gpt2", { vocabulary, contextLength, width, numLayers, numHeads, hidden });
  requireDivisor("gpt2", numHeads, width);
  const headWidth = width / numHeads;
  const initAttention = (key: Tensor, deviation: number): FusedAttentionParams => ({
    input: initProjection(foldIn(key, 0), [width, 3 * width], { bias: true }),
    output: initProjection(foldIn(key, 1), [width, width], { bias: true, deviation }),
  });
  return labelledModel({
    init: (key) => ({
      params: {
        ...initTokens(key, { vocabulary, width, tiedHead }),
        positions_TD: initEmbedding(foldIn(key, 2), [contextLength, width]),
        blocks: Array.from({ length: numLayers }, (_, layer) =>
          initTransformerBlock(foldIn(key, 3 + layer), { width, hidden, numLayers }, initAttention),
        ),
        finalNorm: initLayerNorm(width),
      },
      state: {},
    }),
    apply: (params, state, tokens_BT, { past }) => {
      requireTokens("gpt2", tokens_BT, contextLength);
      const length = tokens_BT.shape[1]!;
      const positions = positionsOf(past, length);
      const embedded_BTD = scope("embedding", () =>
        add(
          embedding(params.embedding_VD, cast(tokens_BT, "i32")),
          positions === undefined
            ? slice(params.positions_TD, [0], [length])
            : embedding(params.positions_TD, positions),
        ),
      );
      const x_BTD = applyTransformerBlocks(
        params.blocks,
        embedded_BTD,
        {
          attend: (attention, x) => applyFusedAttention(attention, x, { headWidth, causal: true, past }),
          activation,
          epsilon,
          norms: "before",
        },
        recompute,
        past,
      );
      return [scope("head", () => tokenLogits(params, applyLayerNorm(params.finalNorm, x_BTD, epsilon))), state];
    },
  });
};
