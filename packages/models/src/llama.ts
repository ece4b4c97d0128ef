// Shapes: B batch, T positions, D width, H heads of queries, G heads of keys and values, K width of a head, F hidden
// width of the feed-forward part, V vocabulary. A suffix names the dimensions of a tensor in order: x_BTD.
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
import { needSizes } from "./need-sizes.ts";
import { applyRmsNorm, initRmsNorm, type RmsNormParams } from "./normalisation.ts";
import { type Past, positionsOf } from "./past.ts";
import { initProjection, project, type Projection } from "./projection.ts";
import { asBlock, type Recompute } from "./recompute.ts";
import { initTokens, tokenLogits, type TokenParams } from "./token-head.ts";
import { needTokens, residualDeviation } from "./transformer-sizes.ts";

/** Sizes of a Llama. */
export interface LlamaOptions {
  /** V */
  readonly vocabulary: number;
  /** D */
  readonly width: number;
  readonly numLayers: number;
  /** H */
  readonly numHeads: number;
  /** G, must divide H. Default: H. */
  readonly numKeyHeads?: number;
  /** K, even. Default: D / H. */
  readonly headWidth?: number;
  /** F */
  readonly hidden: number;
  /** Most positions that a sequence may have. Default: no bound, as rotary positions need none. */
  readonly contextLength?: number;
  /** Base of the rotary frequencies. Default: 10 000. */
  readonly rotaryBase?: number;
  /** How they are stretched for longer sequences. Default: none. */
  readonly rotaryScaling?: RotaryScaling;
  /** ε of the norms. Default: 1e-6. */
  readonly epsilon?: number;
  /** Biases of query, key and value (as in Qwen 2), or of the output too. Default: none. */
  readonly attentionBias?: "none" | "inputs" | "all";
  /** Biases of the feed-forward part. Default: false. */
  readonly feedForwardBias?: boolean;
  /** Use the embedding as the matrix of the logits too. Default: false. */
  readonly tiedHead?: boolean;
  /**
   * `blocks` keeps what enters each block for the backward pass and computes the rest of it again: see `checkpoint`.
   * Default: none.
   */
  readonly recompute?: Recompute;
}

/** Parameters of one of Llama's blocks. */
export interface LlamaBlockParams {
  readonly attentionNorm: RmsNormParams;
  readonly attention: AttentionParams;
  readonly feedForwardNorm: RmsNormParams;
  /** [D, F] */
  readonly gate: Projection;
  /** [D, F] */
  readonly up: Projection;
  /** [F, D] */
  readonly down: Projection;
}

export interface LlamaParams extends TokenParams {
  readonly blocks: readonly LlamaBlockParams[];
  readonly finalNorm: RmsNormParams;
}

/**
 * The decoder of the Llama family: root-mean-square normalisation before each branch, rotary positions in halves of a
 * head (as Hugging Face keeps the weights), causal attention with G heads of keys for H of queries, SwiGLU. Inputs i32
 * or u8 [B, T], labels [B, T]: the inputs one position later.
 *
 * Parameters without biases: `VD + L·(2·DHK + 2·DGK + 3·DF + 2D) + D`, plus `DV` with its own head. Forward flops per
 * token: about twice the matrix parameters, plus `4·T·HK` per layer for attention.
 *
 * @throws ArgumentError when sizes are not positive integers, H is no multiple of G, or the width of a head is odd.
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
  needSizes("llama", { vocabulary, width, numLayers, numHeads, numKeyHeads, headWidth, hidden });
  if (numHeads % numKeyHeads !== 0)
    throw new ArgumentError(
      `llama: ${numKeyHeads} heads of keys do not divide the ${numHeads} heads of queries; use a divisor`,
    );
  if (headWidth % 2 !== 0)
    throw new ArgumentError(
      `llama: rotary positions turn pairs of values, but a head of ${headWidth} is odd; use an even width of a head`,
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
      needTokens("llama", tokens_BT, contextLength);
      const embedded_BTD = scope("embedding", () => embedding(params.embedding_VD, cast(tokens_BT, "i32")));
      const x_BTD = params.blocks.reduce(
        (x, block, layer) => scope(`block-${layer}`, () => asBlock(recompute, () => applyBlock(block, x, past), past)),
        embedded_BTD,
      );
      return [scope("head", () => tokenLogits(params, applyRmsNorm(params.finalNorm, x_BTD, epsilon))), state];
    },
  });
};
