// Shapes: B batch, T positions, D width, H heads, F hidden width of the feed-forward layers, V vocabulary.
import { type EmptyState, gelu, type Tensor } from "@skein/tensor-core";
import { attentionField } from "./attention-layer.ts";
import { decoder, decoderDefaults } from "./decoder.ts";
import { fusedAttentionBranch, type FusedAttentionParams } from "./fused-attention.ts";
import { layerNormStack, type TransformerBlockParams } from "./layer-norm-stack.ts";
import type { Model } from "./model.ts";
import type { NormParams } from "./normalisation.ts";
import { requireSizes } from "./require-sizes.ts";
import type { TokenParams } from "./token-embedding.ts";
import {
  type LayerNormTransformerOptions,
  requireDivisor,
  requireTokens,
  residualDeviation,
} from "./transformer-sizes.ts";

/** Sizes of a GPT-2. */
export interface Gpt2Options extends LayerNormTransformerOptions {
  /** V, number of tokens in the vocabulary. */
  readonly vocabulary: number;
  /** Maximum number of positions in a sequence. */
  readonly contextLength: number;
  /** Whether the output head uses the embedding matrix (weight tying). Default: true. */
  readonly tiedHead?: boolean;
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
 * Parameters with L layers: `VD + TD + L·(4D² + 2DF + 9D + F) + 2D`; 124,439,808 for the small model. Forward flops per
 * token: about twice the matrix parameters, plus `4·T·D` per layer for attention.
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
  const deviation = residualDeviation(numLayers);
  const attention = fusedAttentionBranch({ width, numHeads, deviation, causal: true });
  const sizes = { width, numLayers, numHeads, hidden, activation, epsilon, recompute };
  return decoder<Gpt2Params>({
    ...decoderDefaults,
    ...layerNormStack(sizes, attentionField(attention)),
    requireTokens: (tokens) => requireTokens("gpt2", tokens, contextLength),
    embedding: { vocabulary, width, numPositions: contextLength, tiedHead, keys: { head: 1, positions: 2 } },
    firstBlockKey: 3,
  });
};
