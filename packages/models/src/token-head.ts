// Shapes: B batch, T positions, D width, V vocabulary.
import { foldIn, matmul, normal, type Tensor } from "@skein/tensor-core";
import { initEmbedding } from "./layers.ts";
import { transformerDeviation } from "./projection.ts";

/** Embedding matrix and output head of a decoder. */
export interface TokenParams {
  readonly embedding_VD: Tensor;
  /** Matrix of an untied output head. Absent for a tied head. */
  readonly head_DV?: Tensor;
}

/** Draws the embedding and the head from the key, folded with 0 for the embedding and 1 for the head. */
export const initTokens = (
  key: Tensor,
  { vocabulary, width, tiedHead }: { readonly vocabulary: number; readonly width: number; readonly tiedHead: boolean },
): TokenParams => ({
  embedding_VD: initEmbedding(foldIn(key, 0), [vocabulary, width]),
  ...(!tiedHead && { head_DV: normal(foldIn(key, 1), [width, vocabulary], { deviation: transformerDeviation }) }),
});

/** Computes logits [B, T, V] with the matrix of the head if the head is untied, or with the embedding matrix. */
export const tokenLogits = ({ embedding_VD, head_DV }: TokenParams, normed_BTD: Tensor): Tensor =>
  head_DV === undefined ? matmul(normed_BTD, embedding_VD, { transposeB: true }) : matmul(normed_BTD, head_DV);
