// Shapes: B batch, T positions, D width, H heads, K head width (D / H), F hidden width of the feed-forward part, V
// vocabulary. A suffix names the dimensions of a tensor in order: x_BTD.
import {
  add,
  ArgumentError,
  attention,
  cast,
  embedding,
  type EmptyState,
  foldIn,
  gelu,
  matmul,
  multiply,
  normal,
  reshape,
  rotary,
  scope,
  ShapeError,
  silu,
  slice,
  type Tensor,
  transpose,
} from "@skein/tensor-core";
import { dropWhileTraining, initEmbedding } from "./layers.ts";
import { labelledModel, type Model } from "./model.ts";
import {
  applyLayerNorm,
  applyRmsNorm,
  initLayerNorm,
  initRmsNorm,
  type NormParams as LayerNormParams,
  type RmsNormParams,
} from "./normalisation.ts";
import { asBlock, type Recompute } from "./recompute.ts";

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
}

/** The shift of layer normalisation only. */
type NormParams = RmsNormParams & Partial<LayerNormParams>;

export interface GptBlockParams {
  readonly attentionNorm: NormParams;
  readonly query_DD: Tensor;
  readonly key_DD: Tensor;
  readonly value_DD: Tensor;
  readonly output_DD: Tensor;
  readonly feedForwardNorm: NormParams;
  readonly up_DF: Tensor;
  /** SwiGLU only. */
  readonly gate_DF?: Tensor;
  readonly down_FD: Tensor;
}

export interface GptParams {
  readonly embedding_VD: Tensor;
  /** Learned positions only. */
  readonly positions_TD?: Tensor;
  readonly blocks: readonly GptBlockParams[];
  readonly finalNorm: NormParams;
  /** Untied head only. */
  readonly head_DV?: Tensor;
}

const needPositive = (options: Readonly<Record<string, number>>): void => {
  for (const [name, value] of Object.entries(options)) {
    if (!Number.isInteger(value) || value < 1)
      throw new ArgumentError(`gpt: ${name} is ${value}; use an integer from 1`);
  }
};

/**
 * A decoder-only transformer over bytes (or other small tokens): normalisation before each branch, causal attention,
 * feed-forward part, no biases in the matrices. Inputs i32 or u8 [B, T], labels [B, T]: the inputs one position later.
 *
 * Weights start normal with deviation 0.02, those that write to the residual stream with 0.02 / √(2·layers), as in
 * GPT-2.
 *
 * Parameters: `VD + L·(4D² + 2DF + norms)`, with SwiGLU `3DF` for `2DF`; plus `TD` with learned positions and `DV` with
 * an untied head. Forward flops per token: about twice the matrix parameters, plus `4·T·D` per layer for attention.
 * @throws ArgumentError when sizes are not positive integers or the heads do not divide the width.
 * Source: Radford et al. 2019 (GPT-2); Su et al. 2021, arXiv 2104.09864 (rotary); Shazeer 2020, arXiv 2002.05202
 * (SwiGLU).
 */
export const gpt = (options: GptOptions): Model<GptParams, EmptyState> => {
  const {
    vocabulary = 256,
    contextLength,
    width,
    numLayers,
    numHeads,
    positions = "rotary",
    norm = "rms",
    activation = "gelu",
    tiedHead = true,
    dropoutRate = 0,
    recompute = "none",
  } = options;
  const hidden = options.hidden ?? (activation === "gelu" ? 4 * width : 8 * Math.ceil(width / 3));
  needPositive({ vocabulary, contextLength, width, numLayers, numHeads, hidden });
  if (width % numHeads !== 0)
    throw new ArgumentError(
      `gpt: ${numHeads} heads do not divide the width ${width}; choose a width that is a multiple of the heads`,
    );
  const headWidth = width / numHeads;
  if (positions === "rotary" && headWidth % 2 !== 0)
    throw new ArgumentError(
      `gpt: rotary positions turn pairs of values, but a head of ${width} / ${numHeads} = ${headWidth} values is odd; use an even head width or learned positions`,
    );

  const initNorm = (): NormParams => (norm === "layer" ? initLayerNorm(width) : initRmsNorm(width));
  const normalise = ({ gain, shift }: NormParams, x: Tensor): Tensor =>
    shift === undefined ? applyRmsNorm({ gain }, x) : applyLayerNorm({ gain, shift }, x);

  const initBlock = (key: Tensor): GptBlockParams => {
    const inner = 0.02;
    const residual = inner / Math.sqrt(2 * numLayers);
    const weight = (id: number, numIn: number, numOut: number, deviation: number): Tensor =>
      normal(foldIn(key, id), [numIn, numOut], { deviation });
    return {
      attentionNorm: initNorm(),
      query_DD: weight(0, width, width, inner),
      key_DD: weight(1, width, width, inner),
      value_DD: weight(2, width, width, inner),
      output_DD: weight(3, width, width, residual),
      feedForwardNorm: initNorm(),
      up_DF: weight(4, width, hidden, inner),
      ...(activation === "swiglu" && { gate_DF: weight(5, width, hidden, inner) }),
      down_FD: weight(6, hidden, width, residual),
    };
  };

  const attend = (block: GptBlockParams, x_BTD: Tensor): Tensor => {
    const [numRows, length] = x_BTD.shape as [number, number, number];
    const heads = (weight_DD: Tensor): Tensor =>
      transpose(reshape(matmul(x_BTD, weight_DD), [numRows, length, numHeads, headWidth]), [0, 2, 1, 3]);
    const turn = (x_BHTK: Tensor): Tensor => (positions === "rotary" ? rotary(x_BHTK) : x_BHTK);
    const y_BHTK = attention(turn(heads(block.query_DD)), turn(heads(block.key_DD)), heads(block.value_DD), {
      causal: true,
    });
    return matmul(reshape(transpose(y_BHTK, [0, 2, 1, 3]), [numRows, length, width]), block.output_DD);
  };

  const feedForward = (block: GptBlockParams, x_BTD: Tensor): Tensor => {
    const up_BTF = matmul(x_BTD, block.up_DF);
    const h_BTF = block.gate_DF === undefined ? gelu(up_BTF) : multiply(silu(matmul(x_BTD, block.gate_DF)), up_BTF);
    return matmul(h_BTF, block.down_FD);
  };

  return labelledModel({
    init: (key) => ({
      params: {
        embedding_VD: initEmbedding(foldIn(key, 0), [vocabulary, width]),
        ...(positions === "learned" && { positions_TD: initEmbedding(foldIn(key, 1), [contextLength, width]) }),
        blocks: Array.from({ length: numLayers }, (_, layer) => initBlock(foldIn(key, 3 + layer))),
        finalNorm: initNorm(),
        ...(!tiedHead && { head_DV: normal(foldIn(key, 2), [width, vocabulary], { deviation: 0.02 }) }),
      },
      state: {},
    }),
    apply: (params, state, tokens_BT, context) => {
      const length = tokens_BT.shape[1];
      if (tokens_BT.rank !== 2 || length! > contextLength) {
        throw new ShapeError(
          "gpt",
          `tokens [${tokens_BT.shape.join(", ")}] do not fit: it takes [B, T] with T up to the context length ${contextLength}; cut the sequences or raise contextLength`,
        );
      }
      const drop = (x: Tensor, use: number): Tensor => dropWhileTraining(x, dropoutRate, context, use);
      const embedded_BTD = scope("embedding", () => {
        const x_BTD = embedding(params.embedding_VD, cast(tokens_BT, "i32"));
        return drop(
          params.positions_TD === undefined ? x_BTD : add(x_BTD, slice(params.positions_TD, [0], [length!])),
          0,
        );
      });
      const applyBlock = (x: Tensor, block: GptBlockParams, layer: number): Tensor => {
        const y = add(
          x,
          drop(
            scope("attention", () => attend(block, normalise(block.attentionNorm, x))),
            2 * layer + 1,
          ),
        );
        return add(
          y,
          drop(
            scope("feed-forward", () => feedForward(block, normalise(block.feedForwardNorm, y))),
            2 * layer + 2,
          ),
        );
      };
      const x_BTD = params.blocks.reduce(
        (x, block, layer) => scope(`block-${layer}`, () => asBlock(recompute, () => applyBlock(x, block, layer))),
        embedded_BTD,
      );
      const logits_BTV = scope("head", () => {
        const normed_BTD = normalise(params.finalNorm, x_BTD);
        return params.head_DV === undefined
          ? matmul(normed_BTD, params.embedding_VD, { transposeB: true })
          : matmul(normed_BTD, params.head_DV);
      });
      return [logits_BTV, state];
    },
  });
};
