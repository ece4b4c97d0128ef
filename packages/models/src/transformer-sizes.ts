import { ArgumentError, formatShape, ShapeError, type Tensor } from "@skein/tensor-core";
import { transformerDeviation } from "./projection.ts";

/**
 * Checks the number of heads.
 * @throws ArgumentError unless the heads divide the width.
 */
export const requireDivisor = (model: string, numHeads: number, width: number): void => {
  if (width % numHeads !== 0)
    throw new ArgumentError(
      `${model}: ${numHeads} heads do not divide the width ${width}; choose a width that is a multiple of the heads`,
    );
};

/**
 * Checks the shape of tokens.
 * @throws ShapeError unless the tokens are [B, T], with T up to the context length.
 */
export const requireTokens = (model: string, tokens: Tensor, contextLength: number = Infinity): void => {
  if (tokens.rank === 2 && tokens.shape[1]! <= contextLength) return;
  const limit = contextLength === Infinity ? "" : ` with T up to the context length ${contextLength}`;
  throw new ShapeError(
    model,
    `tokens ${formatShape(tokens.shape)} do not fit: [B, T]${limit} is required; cut or reshape the sequences`,
  );
};

/**
 * Returns the standard deviation of matrices whose output is added to the residual stream. There are two such matrices
 * per layer, and the sum of all their outputs has the standard deviation of a single output with the default weights.
 * Source: Radford et al. 2019 (GPT-2).
 */
export const residualDeviation = (numLayers: number): number => transformerDeviation / Math.sqrt(2 * numLayers);
