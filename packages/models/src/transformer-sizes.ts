import { ArgumentError, formatShape, ShapeError, type Tensor } from "@skein/tensor-core";
import { transformerDeviation } from "./projection.ts";
import type { RecomputeOptions } from "./recompute.ts";

/** Options that all transformers share. */
export interface TransformerOptions extends RecomputeOptions {
  /** D, width of the hidden states. */
  readonly width: number;
  readonly numLayers: number;
  /** H, number of attention heads; must divide the width. */
  readonly numHeads: number;
}

/** Options of transformers with layer norms and two matrices per feed-forward layer: GPT-2, BERT, ViT. */
export interface LayerNormTransformerOptions extends TransformerOptions {
  /** F, hidden width of the feed-forward layers. Default: 4D. */
  readonly hidden?: number;
  /** Activation function of the feed-forward layers. Default: GELU, for GPT-2 in the tanh approximation. */
  readonly activation?: (x: Tensor) => Tensor;
  /** ε of the layer norms. Default: 1e-12, for GPT-2 1e-5. */
  readonly epsilon?: number;
}

/**
 * Checks the number of heads.
 * @throws ArgumentError if the heads do not divide the width.
 */
export const requireDivisor = (model: string, numHeads: number, width: number): void => {
  if (width % numHeads !== 0)
    throw new ArgumentError(
      `${model}: ${numHeads} heads do not divide the width ${width}; choose a width that is a multiple of the heads`,
    );
};

/**
 * Checks the shape of tokens.
 * @param cure Suggested fix, for the error message.
 * @throws ShapeError if the tokens are not [B, T] with T up to the context length.
 */
export const requireTokens = (
  model: string,
  tokens: Tensor,
  contextLength: number = Infinity,
  cure = "cut or reshape the sequences",
): void => {
  if (tokens.rank === 2 && tokens.shape[1]! <= contextLength) return;
  const limit = contextLength === Infinity ? "" : ` with T up to the context length ${contextLength}`;
  throw new ShapeError(model, `tokens ${formatShape(tokens.shape)} do not fit: [B, T]${limit} is required; ${cure}`);
};

/**
 * Returns the initial standard deviation of matrices whose output is added to the residual stream. Each layer has two
 * such matrices, and the sum of all their outputs has the standard deviation of a single output with the default
 * weights. Source: Radford et al. 2019 (GPT-2).
 */
export const residualDeviation = (numLayers: number): number => transformerDeviation / Math.sqrt(2 * numLayers);
