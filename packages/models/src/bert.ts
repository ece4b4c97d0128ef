// Shapes: B batch, T positions, D width, H heads, F hidden width of the feed-forward layers, V vocabulary, S segments.
import {
  add,
  arange,
  cast,
  embedding,
  type EmptyState,
  foldIn,
  gelu,
  matmul,
  notEqual,
  reduceMax,
  reshape,
  scope,
  ShapeError,
  formatShape,
  slice,
  tanh,
  type Tensor,
  where,
  zeros,
  zerosLike,
} from "@skein/tensor-core";
import { attentionBranch, attentionField, type AttentionParams } from "./attention-layer.ts";
import { layerNormStack, type TransformerBlockParams } from "./layer-norm-stack.ts";
import { initEmbedding } from "./layers.ts";
import { labelledModel, type Model } from "./model.ts";
import { requireSizes } from "./require-sizes.ts";
import type { NormParams } from "./normalisation.ts";
import { initProjection, project, type Projection } from "./projection.ts";
import { postNorm } from "./residual-connection.ts";
import { applyBlocks, initBlocks } from "./transformer-block.ts";
import {
  type LayerNormTransformerOptions,
  requireDivisor,
  requireTokens,
  residualDeviation,
} from "./transformer-sizes.ts";

/**
 * Output of the model: hidden states [B, T, D], token logits at each position [B, T, V], or class logits of the
 * sequence [B, classes].
 */
export type BertHead = "states" | "tokens" | { readonly numClasses: number };

/** Sizes of a BERT, and its output head. */
export interface BertOptions extends LayerNormTransformerOptions {
  /** V, number of tokens in the vocabulary. */
  readonly vocabulary: number;
  /** Maximum number of positions in a sequence. */
  readonly contextLength: number;
  /** S, number of segments. Default: 2. */
  readonly numSegments?: number;
  readonly head: BertHead;
  /**
   * Padding token at the end of rows. Positions after the last non-padding token of a row are masked. Absent: all
   * positions are used.
   */
  readonly padding?: number;
}

/** Parameters of a BERT. The letters at the end of a name are the shape. */
export interface BertParams {
  readonly embedding_VD: Tensor;
  readonly positions_TD: Tensor;
  readonly segments_SD: Tensor;
  readonly embeddingNorm: NormParams;
  readonly blocks: readonly TransformerBlockParams<AttentionParams>[];
  /**
   * Parameters of the token head: transform and norm before the product with the embedding, and bias after the product.
   */
  readonly tokens?: { readonly transform: Projection; readonly norm: NormParams; readonly bias_V: Tensor };
  /** Pooler of the class head, a dense layer applied to the first position. */
  readonly pooler?: Projection;
  readonly classifier?: Projection;
}

/**
 * BERT: a bidirectional encoder with layer norm after each branch and a bias in every layer. Inputs are tokens, i32 [B,
 * T], or tokens and their segments, [B, 2, T]; without segments all tokens are in segment 0. Labels are the original
 * tokens at masked positions and −100 elsewhere, [B, T], or classes [B].
 *
 * Parameters of the encoder: `(V + T + S)·D + 2D + L·(4D² + 2DF + 9D + F)`. Forward flops per token: about twice the
 * matrix parameters, plus `4·T·D` per layer for attention.
 *
 * @throws ArgumentError if sizes are not positive integers, or the heads do not divide the width.
 * Source: Devlin et al. 2019, arXiv 1810.04805.
 */
export const bert = (options: BertOptions): Model<BertParams, EmptyState> => {
  const {
    vocabulary,
    contextLength,
    numSegments = 2,
    width,
    numLayers,
    numHeads,
    hidden = 4 * width,
    head,
    padding,
    activation = (x) => gelu(x),
    epsilon = 1e-12,
    recompute = "none",
  } = options;
  const classes = typeof head === "object" ? head : {};
  requireSizes("bert", { vocabulary, contextLength, numSegments, width, numLayers, numHeads, hidden, ...classes });
  requireDivisor("bert", numHeads, width);
  const deviation = residualDeviation(numLayers);
  const attention = attentionBranch({ width, numHeads, inputBias: true, outputBias: true, deviation });
  const sizes = { width, numLayers, numHeads, hidden, activation, epsilon, recompute };
  const stack = layerNormStack(sizes, attentionField(attention), postNorm);
  const { norm } = stack;

  const initHead = (key: Tensor): Pick<BertParams, "tokens" | "pooler" | "classifier"> => {
    const transform = (): Projection => initProjection(foldIn(key, 0), [width, width], { bias: true });
    if (head === "states") return {};
    if (head === "tokens")
      return { tokens: { transform: transform(), norm: norm.init(), bias_V: zeros([vocabulary]) } };
    return {
      pooler: transform(),
      classifier: initProjection(foldIn(key, 1), [width, head.numClasses], { bias: true }),
    };
  };

  const embed = (params: BertParams, tokens_BT: Tensor, segments_BT: Tensor): Tensor =>
    norm.apply(
      params.embeddingNorm,
      add(
        add(embedding(params.embedding_VD, tokens_BT), embedding(params.segments_SD, segments_BT)),
        slice(params.positions_TD, [0], [tokens_BT.shape[1]!]),
      ),
    );

  const applyHead = (params: BertParams, x_BTD: Tensor): Tensor => {
    if (params.tokens !== undefined) {
      const h_BTD = norm.apply(params.tokens.norm, activation(project(params.tokens.transform, x_BTD)));
      return add(matmul(h_BTD, params.embedding_VD, { transposeB: true }), params.tokens.bias_V);
    }
    if (params.pooler === undefined) return x_BTD;
    const first_BD = reshape(slice(x_BTD, [0, 0], [x_BTD.shape[0]!, 1]), [-1, width]);
    return project(params.classifier!, tanh(project(params.pooler, first_BD)));
  };

  return labelledModel(
    {
      init: (key) => ({
        params: {
          embedding_VD: initEmbedding(foldIn(key, 0), [vocabulary, width]),
          positions_TD: initEmbedding(foldIn(key, 1), [contextLength, width]),
          segments_SD: initEmbedding(foldIn(key, 2), [numSegments, width]),
          embeddingNorm: norm.init(),
          blocks: initBlocks(stack, key, 4),
          ...initHead(foldIn(key, 3)),
        },
        state: {},
      }),
      apply: (params, state, inputs, { train }) => {
        const [tokens_BT, segments_BT] = tokensAndSegments(cast(inputs, "i32"));
        requireTokens("bert", tokens_BT, contextLength);
        const keyLengths = padding === undefined ? undefined : lengthsBefore(tokens_BT, padding);
        const embedded_BTD = scope("embedding", () => embed(params, tokens_BT, segments_BT));
        const [x_BTD] = applyBlocks(stack, params.blocks, embedded_BTD, { train, keyLengths });
        return [scope("head", () => applyHead(params, x_BTD)), state];
      },
    },
    { ignoreIndex: -100 },
  );
};

const tokensAndSegments = (inputs: Tensor): readonly [tokens_BT: Tensor, segments_BT: Tensor] => {
  if (inputs.rank !== 3) return [inputs, zerosLike(inputs)];
  const [numRows, numParts, length] = inputs.shape as [number, number, number];
  if (numParts !== 2)
    throw new ShapeError(
      "bert",
      `inputs ${formatShape(inputs.shape)} do not fit: required are tokens [B, T], or [B, 2, T] with the segments after the tokens; stack the two`,
    );
  const part = (at: number): Tensor => reshape(slice(inputs, [0, at], [numRows, at + 1]), [numRows, length]);
  return [part(0), part(1)];
};

/** Returns, for each row, the number of positions up to and including its last non-padding token, i32 [B]. */
const lengthsBefore = (tokens_BT: Tensor, padding: number): Tensor =>
  reduceMax(where(notEqual(tokens_BT, padding), add(arange(tokens_BT.shape[1]!), 1), 0), { dims: 1 });
