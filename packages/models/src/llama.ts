// Shapes: B batch, T positions, D width, H heads of queries, G heads of keys and values, K width of a head, F hidden
// width of the feed-forward layers, V vocabulary. A suffix names the dimensions of a tensor in order: x_BTD.
import {
  add,
  ArgumentError,
  cast,
  embedding,
  type EmptyState,
  foldIn,
  multiply,
  rotary,
  type RotaryScaling,
  scope,
  silu,
  type Tensor,
} from "@skein/tensor-core";
import { applyAttention, type AttentionParams, initAttention } from "./attention-layer.ts";
import { labelledModel, type Model } from "./model.ts";
import { requireSizes } from "./require-sizes.ts";
import { applyRmsNorm, initRmsNorm, type RmsNormParams } from "./normalisation.ts";
import { type Past, positionsOf } from "./past.ts";
import { initProjection, project, type Projection } from "./projection.ts";
import { runBlock, type Recompute } from "./recompute.ts";
import { initTokens, tokenLogits, type TokenParams } from "./token-head.ts";
import { requireTokens, residualDeviation } from "./transformer-sizes.ts";

/** Sizes of a Llama. */
export interface LlamaOptions {
  /** V, number of tokens in the vocabulary. */
  readonly vocabulary: number;
  /** D, width of the hidden states. */
  readonly width: number;
  readonly numLayers: number;
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
   * Attention matrices with biases: `none`; query, key and value (`inputs`, as in Qwen 2); or query, key, value and
   * output (`all`). Default: none.
   */
  readonly attentionBias?: "none" | "inputs" | "all";
  /** Whether the matrices of the feed-forward layers have biases. Default: false. */
  readonly feedForwardBias?: boolean;
  /** Whether the output head uses the embedding matrix (weight tying). Default: false. */
  readonly tiedHead?: boolean;
  /**
   * Activation recomputation. `blocks`: the forward pass stores only the input of each block, and the backward pass
   * recomputes the block (see `checkpoint`). Default: none.
   */
  readonly recompute?: Recompute;
}

/** Parameters of one block of a Llama. */
export interface LlamaBlockParams {
  readonly attentionNorm: RmsNormParams;
  readonly attention: AttentionParams;
  readonly feedForwardNorm: RmsNormParams;
  /** Gate matrix of SwiGLU, [D, F]. */
  readonly gate: Projection;
  /** Up projection of SwiGLU, [D, F]. */
  readonly up: Projection;
  /** Down projection of SwiGLU, [F, D]. */
  readonly down: Projection;
}

export interface LlamaParams extends TokenParams {
  readonly blocks: readonly LlamaBlockParams[];
  readonly finalNorm: RmsNormParams;
}

/**
 * Decoder of the Llama family: RMS norm before each branch, rotary positions that pair the two halves of a head (the
 * layout of Hugging Face's weights), causal grouped-query attention with G key heads for H query heads, SwiGLU. Inputs
 * i32 or u8 [B, T]; labels [B, T] are the inputs shifted by one position.
 *
 * Parameters without biases: `VD + L·(2·DHK + 2·DGK + 3·DF + 2D) + D`, plus `DV` with an untied head. Forward flops per
 * token: about twice the matrix parameters, plus `4·T·HK` per layer for attention.
 *
 * @throws ArgumentError if sizes are not positive integers, H is not a multiple of G, or the width of a head is odd.
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

  const initBlock = (key: Tensor): LlamaBlockParams => {
    const deviation = residualDeviation(numLayers);
    const bias = feedForwardBias;
    return {
      attentionNorm: initRmsNorm(width),
      attention: initAttention(
        foldIn(key, 0),
        { width, numHeads, numKeyHeads, headWidth },
        { inputs: attentionBias !== "none", output: attentionBias === "all" },
        deviation,
      ),
      feedForwardNorm: initRmsNorm(width),
      gate: initProjection(foldIn(key, 1), [width, hidden], { bias }),
      up: initProjection(foldIn(key, 2), [width, hidden], { bias }),
      down: initProjection(foldIn(key, 3), [hidden, width], { bias, deviation }),
    };
  };

  const applyBlock = (block: LlamaBlockParams, x_BTD: Tensor, past: Past | undefined): Tensor => {
    const positions = positionsOf(past, x_BTD.shape[1]!);
    const turn = (x: Tensor): Tensor =>
      rotary(x, {
        base: rotaryBase,
        ...(rotaryScaling && { scaling: rotaryScaling }),
        ...(positions && { positions }),
      });
    const y_BTD = scope("attention", () =>
      add(
        x_BTD,
        applyAttention(block.attention, applyRmsNorm(block.attentionNorm, x_BTD, epsilon), {
          headWidth,
          turn,
          causal: true,
          past,
        }),
      ),
    );
    return scope("feed-forward", () => {
      const normed_BTD = applyRmsNorm(block.feedForwardNorm, y_BTD, epsilon);
      const h_BTF = multiply(silu(project(block.gate, normed_BTD)), project(block.up, normed_BTD));
      return add(y_BTD, project(block.down, h_BTF));
    });
  };

  return labelledModel({
    init: (key) => ({
      params: {
        ...initTokens(key, { vocabulary, width, tiedHead }),
        blocks: Array.from({ length: numLayers }, (_, layer) => initBlock(foldIn(key, 2 + layer))),
        finalNorm: initRmsNorm(width),
      },
      state: {},
    }),
    apply: (params, state, tokens_BT, { past }) => {
      requireTokens("llama", tokens_BT, contextLength);
      const embedded_BTD = scope("embedding", () => embedding(params.embedding_VD, cast(tokens_BT, "i32")));
      const x_BTD = params.blocks.reduce(
        (x, block, layer) => scope(`block-${layer}`, () => runBlock(recompute, () => applyBlock(block, x, past), past)),
        embedded_BTD,
      );
      return [scope("head", () => tokenLogits(params, applyRmsNorm(params.finalNorm, x_BTD, epsilon))), state];
    },
  });
};
