// Shapes: B batch, T positions, D width, H heads of queries, G heads of keys and values, K width of a head.
import { attention, type AttentionOptions, foldIn, reshape, split, type Tensor, transpose } from "@skein/tensor-core";
import { queryOptions, type Past } from "./past.ts";
import { initProjection, type Projection, project } from "./projection.ts";

/** Parameters of attention. Shapes of the weights: query [D, HK], key and value [D, GK], output [HK, D]. */
export interface AttentionParams {
  readonly query: Projection;
  readonly key: Projection;
  readonly value: Projection;
  readonly output: Projection;
}

export interface AttentionSizes {
  /** D, width of the inputs and outputs. */
  readonly width: number;
  /** H, number of query heads. */
  readonly numHeads: number;
  /** G, number of key/value heads; must divide H. */
  readonly numKeyHeads: number;
  /** K, width of a head. */
  readonly headWidth: number;
}

export interface HeadOptions extends Pick<AttentionOptions, "causal" | "keyLengths"> {
  /** K, width of a head. */
  readonly headWidth: number;
  /** Position encoding of queries and keys, [B, heads, T, K], such as a rotary embedding. Default: none. */
  readonly turn?: (x: Tensor) => Tensor;
  /** Keys and values of earlier positions, for causal attention. Default: none. */
  readonly past?: Past | undefined;
}

/**
 * Draws the parameters of attention.
 * @param biases Which matrices have biases.
 * @param deviation Standard deviation of the initial output weight, whose product is added to the residual stream.
 */
export const initAttention = (
  key: Tensor,
  { width, numHeads, numKeyHeads, headWidth }: AttentionSizes,
  biases: { readonly inputs: boolean; readonly output: boolean },
  deviation: number,
): AttentionParams => {
  const input = (id: number, heads: number): Projection =>
    initProjection(foldIn(key, id), [width, heads * headWidth], { bias: biases.inputs });
  return {
    query: input(0, numHeads),
    key: input(1, numKeyHeads),
    value: input(2, numKeyHeads),
    output: initProjection(foldIn(key, 3), [numHeads * headWidth, width], { bias: biases.output, deviation }),
  };
};

/** Applies attention to queries [B, T, HK], keys and values [B, T, GK] with concatenated heads; returns [B, T, HK]. */
export const attendHeads = (
  query: Tensor,
  key: Tensor,
  value: Tensor,
  { headWidth, turn = (x) => x, past, ...options }: HeadOptions,
): Tensor => {
  const heads = (x: Tensor): Tensor => transpose(reshape(x, [x.shape[0]!, x.shape[1]!, -1, headWidth]), [0, 2, 1, 3]);
  const [queries, own] = [turn(heads(query)), { keys: turn(heads(key)), values: heads(value) }];
  const { keys, values } = past?.extend(own) ?? own;
  const y_BHTK = attention(queries, keys, values, { ...options, ...(past && queryOptions(past, queries.shape[0]!)) });
  return reshape(transpose(y_BHTK, [0, 2, 1, 3]), query.shape);
};

/** Applies self-attention over all positions or causal self-attention: [B, T, D] to [B, T, D]. */
export const applyAttention = (params: AttentionParams, x_BTD: Tensor, options: HeadOptions): Tensor =>
  project(
    params.output,
    attendHeads(project(params.query, x_BTD), project(params.key, x_BTD), project(params.value, x_BTD), options),
  );

/** Parameters of attention with one input matrix for query, key and value: input [D, 3D], output [D, D]. */
export interface FusedAttentionParams {
  readonly input: Projection;
  readonly output: Projection;
}

/** Applies self-attention with one matrix product for query, key and value: [B, T, D] to [B, T, D]. */
export const applyFusedAttention = (params: FusedAttentionParams, x_BTD: Tensor, options: HeadOptions): Tensor => {
  const [query, key, value] = split(project(params.input, x_BTD), 3, { dim: -1 }) as [Tensor, Tensor, Tensor];
  return project(params.output, attendHeads(query, key, value, options));
};
