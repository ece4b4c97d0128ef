// Shapes: B batch, T positions, D width, V vocabulary.
import { add, cast, embedding, foldIn, matmul, normal, slice, type Tensor } from "@skein/tensor-core";
import { initEmbedding } from "./layers.ts";
import { type Past, positionsOf } from "./past.ts";
import { transformerDeviation } from "./projection.ts";

/** Parameters of a decoder's token embedding and output head. */
export interface TokenParams {
  readonly embedding_VD: Tensor;
  /** Matrix of an untied output head. Absent for a tied head. */
  readonly head_DV?: Tensor;
}

/** Parameters of a decoder outside its blocks: embeddings and output head. */
export interface EmbeddingParams extends TokenParams {
  /** Learned position embeddings. Absent for rotary positions. */
  readonly positions_TD?: Tensor;
}

export interface EmbeddingOptions {
  readonly vocabulary: number;
  readonly width: number;
  /** Number of learned positions. Absent: no position embeddings. */
  readonly numPositions?: number;
  /** Whether the output head uses the embedding matrix (weight tying). */
  readonly tiedHead: boolean;
  /**
   * Integers that are folded into the model's key to initialize the position embeddings and the head. The token
   * embedding uses 0.
   */
  readonly keys: { readonly positions?: number; readonly head: number };
}

export const initTokens = (
  key: Tensor,
  { vocabulary, width, numPositions, tiedHead, keys }: EmbeddingOptions,
): EmbeddingParams => ({
  embedding_VD: initEmbedding(foldIn(key, 0), [vocabulary, width]),
  ...(!tiedHead && {
    head_DV: normal(foldIn(key, keys.head), [width, vocabulary], { deviation: transformerDeviation }),
  }),
  ...(numPositions !== undefined && {
    positions_TD: initEmbedding(foldIn(key, keys.positions!), [numPositions, width]),
  }),
});

/**
 * Returns the embeddings of tokens, plus position embeddings if positions are learned: [B, T] to [B, T, D].
 * @param own Selects the positions to embed, given a tensor of all positions along dimension `dim`.
 */
export const embedTokens = (
  { embedding_VD, positions_TD }: EmbeddingParams,
  tokens_BT: Tensor,
  past: Past | undefined,
  own: (x: Tensor, dim: number) => Tensor,
): Tensor => {
  const x_BTD = embedding(embedding_VD, cast(own(tokens_BT, 1), "i32"));
  if (positions_TD === undefined) return x_BTD;
  const length = tokens_BT.shape[1]!;
  const positions = positionsOf(past, length);
  const rows_TD = positions === undefined ? slice(positions_TD, [0], [length]) : embedding(positions_TD, positions);
  return add(x_BTD, own(rows_TD, 0));
};

/** Computes logits [B, T, V] with the matrix of an untied head, or with the embedding matrix. */
export const tokenLogits = ({ embedding_VD, head_DV }: TokenParams, normed_BTD: Tensor): Tensor =>
  head_DV === undefined ? matmul(normed_BTD, embedding_VD, { transposeB: true }) : matmul(normed_BTD, head_DV);
