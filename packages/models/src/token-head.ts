// Shapes: B batch, T positions, D width, V vocabulary.
import { foldIn, matmul, normal, type Tensor } from "@skein/tensor-core";
import { initEmbedding } from "./layers.ts";
import { transformerDeviation } from "./projection.ts";

/** Embedding and head of a decoder. */
export interface TokenParams {
  readonly embedding_VD: Tensor;
  /** Untied head only. */
  readonly head_DV?: Tensor;
}

/** Draws embedding and head, with uses 0 and 1 of the key. */
export const initTokens = (
  key: Tensor,
  { vocabulary, width, tiedHead }: { readonly vocabulary: number; readonly width: number; readonly tiedHead: boolean },
): TokenParams => ({
  embedding_VD: initEmbedding(foldIn(key, 0), [vocabulary, width]),
  ...(!tiedHead && { head_DV: normal(foldIn(key, 1), [width, vocabulary], { deviation: transformerDeviation }) }),
});

/** Computes logits [B, T, V] with the head's own matrix or the embedding's. */
export const tokenLogits = ({ embedding_VD, head_DV }: TokenParams, normed_BTD: Tensor): Tensor =>
  head_DV === undefined ? matmul(normed_BTD, embedding_VD, { transposeB: true }) : matmul(normed_BTD, head_DV);
