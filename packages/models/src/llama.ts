// Shapes: B batch, T positions, D width, H query heads, G key/value heads, K head width, F hidden width of the
// feed-forward layers, V vocabulary.
import { ArgumentError, type EmptyState, type RotaryScaling } from "@skein/tensor-core";
import { attentionBranch, attentionField, type AttentionParams } from "./attention-layer.ts";
import { decoder, decoderDefaults, type DecoderParts } from "./decoder.ts";
import { type GatedFeedForwardParams, gatedFeedForwardBranch } from "./feed-forward.ts";
import type { Model } from "./model.ts";
import { rmsNormPart, type RmsNormParams } from "./normalisation.ts";
import { recomputed } from "./recompute.ts";
import { requireSizes } from "./require-sizes.ts";
import type { TokenParams } from "./token-embedding.ts";
import type { BlockParams } from "./transformer-block.ts";
import { requireTokens, residualDeviation, type TransformerOptions } from "./transformer-sizes.ts";

/** Sizes of a Llama. */
export interface LlamaOptions extends TransformerOptions {
  /** V, number of tokens in the vocabulary. */
  readonly vocabulary: number;
  /** H, number of query heads. */
  readonly numHeads: number;
  /** G, number of key/value heads; must divide H. Default: H. */
  readonly numKeyHeads?: number;
  /** K, width of a head; must be even. Default: D / H. */
  readonly headWidth?: number;
  /** F, hidden width of the feed-forward layers. */
  readonly hidden: number;
  /** Maximum sequence length. Absent: unlimited, because rotary positions do not need a limit. */
  readonly contextLength?: number;
  /** Base of the rotary frequencies. Default: 10 000. */
  readonly rotaryBase?: number;
  /** Scaling of the rotary frequencies for longer sequences. Absent: no scaling. */
  readonly rotaryScaling?: RotaryScaling;
  /** ε of the RMS norms. Default: 1e-6. */
  readonly epsilon?: number;
  /**
   * Attention matrices that have biases: `none`; query, key and value (`inputs`, as in Qwen 2); or query, key, value
   * and output (`all`). Default: none.
   */
  readonly attentionBias?: "none" | "inputs" | "all";
  /** Whether the matrices of the feed-forward layers have biases. Default: false. */
  readonly feedForwardBias?: boolean;
  /** Whether the output head uses the embedding matrix (weight tying). Default: false. */
  readonly tiedHead?: boolean;
}

/** Parameters of one block of a Llama. */
export interface LlamaBlockParams extends BlockParams<RmsNormParams>, GatedFeedForwardParams {
  readonly attention: AttentionParams;
}

export interface LlamaParams extends TokenParams {
  readonly blocks: readonly LlamaBlockParams[];
  readonly finalNorm: RmsNormParams;
}

/**
 * Decoder of the Llama family: RMS norm before each branch, rotary positions that pair the two halves of a head (the
 * layout of Hugging Face's weights), causal grouped-query attention with G key/value heads for H query heads, SwiGLU.
 * Inputs i32 or u8 [B, T]; labels [B, T] are the inputs shifted by one position.
 *
 * Parameters without biases, with L layers: `VD + L·(2·DHK + 2·DGK + 3·DF + 2D) + D`, plus `DV` with an untied head.
 * Forward flops per token: about twice the matrix parameters, plus `4·T·HK` per layer for attention.
 *
 * @throws ArgumentError if sizes are not positive integers, H is not a multiple of G, or the head width is odd.
 * Source: Touvron et al. 2023, arXiv 2302.13971; Grattafiori et al. 2024, arXiv 2407.21783.
 * @example const model = llama({ vocabulary: 32_000, width: 512, numLayers: 8, numHeads: 8, numKeyHeads: 2, hidden:
 * 1376 });
 */
export const llama = (options: LlamaOptions): Model<LlamaParams, EmptyState> => {
  const {
    vocabulary,
    width,
    numLayers,
    numHeads,
    numKeyHeads = numHeads,
    headWidth = width / numHeads,
    hidden,
    contextLength,
    rotaryBase = 10_000,
    rotaryScaling,
    epsilon = 1e-6,
    attentionBias = "none",
    feedForwardBias = false,
    tiedHead = false,
    recompute = "none",
  } = options;
  requireSizes("llama", { vocabulary, width, numLayers, numHeads, numKeyHeads, headWidth, hidden });
  if (numHeads % numKeyHeads !== 0)
    throw new ArgumentError(
      `llama: ${numKeyHeads} key heads do not divide the ${numHeads} query heads; use a divisor of ${numHeads}`,
    );
  if (headWidth % 2 !== 0)
    throw new ArgumentError(
      `llama: rotary positions rotate pairs of values, but the head width ${headWidth} is odd; use an even head width`,
    );

  const deviation = residualDeviation(numLayers);
  const sizes = { width, numHeads, numKeyHeads, headWidth, deviation };
  const attention = attentionBranch({
    ...sizes,
    inputBias: attentionBias !== "none",
    outputBias: attentionBias === "all",
    causal: true,
    rotary: { base: rotaryBase, ...(rotaryScaling && { scaling: rotaryScaling }) },
  });
  const block = {
    attention: attentionField(attention),
    feedForward: gatedFeedForwardBranch({ width, hidden, bias: feedForwardBias, deviation }),
  };
  const plain: DecoderParts<LlamaParams> = {
    ...decoderDefaults,
    requireTokens: (tokens) => requireTokens("llama", tokens, contextLength),
    embedding: { vocabulary, width, tiedHead, keys: { head: 1 } },
    blocks: Array.from({ length: numLayers }, () => block),
    firstBlockKey: 2,
    norm: rmsNormPart(width, epsilon),
  };
  return decoder(recomputed(plain, recompute));
};
