// Shapes: B batch, T positions, D width, H query heads, G key/value heads, K head width.
import { attention, foldIn, reshape, rotary, type RotaryOptions, type Tensor, transpose } from "@skein/tensor-core";
import { positionsOf, queryOptions } from "./past.ts";
import { initProjection, type Projection, project } from "./projection.ts";
import type { BlockContext, Branch } from "./transformer-block.ts";

/** Parameters of attention. Shapes of the weights: query [D, HK], key and value [D, GK], output [HK, D]. */
export interface AttentionParams {
  readonly query: Projection;
  readonly key: Projection;
  readonly value: Projection;
  readonly output: Projection;
}

export interface AttentionOptions {
  /** D, width of the inputs and outputs. */
  readonly width: number;
  /** H, number of query heads. */
  readonly numHeads: number;
  /** G, number of key/value heads; must divide H. Default: H. */
  readonly numKeyHeads?: number;
  /** K, width of a head. Default: D / H. */
  readonly headWidth?: number;
  /** Whether query, key and value have biases. Default: false. */
  readonly inputBias?: boolean;
  /** Whether the output matrix has a bias. Default: false. */
  readonly outputBias?: boolean;
  /** Standard deviation of the initial output weight. The output is added to the residual stream. */
  readonly deviation: number;
  /** Whether positions do not attend to later positions. Default: false. */
  readonly causal?: boolean;
  /** Rotary position encoding of queries and keys. Absent: no encoding. */
  readonly rotary?: Omit<RotaryOptions, "positions">;
}

/** Applies attention to queries [B, T, HK], keys and values [B, T, GK] with concatenated heads; returns [B, T, HK]. */
export const attendHeads = (
  { width, numHeads, headWidth = width / numHeads, causal = false, rotary: encoding }: AttentionOptions,
  [query, key, value]: readonly [query: Tensor, key: Tensor, value: Tensor],
  { past, keyLengths }: BlockContext,
): Tensor => {
  const [batch, length] = query.shape as [number, number];
  const positions = encoding && positionsOf(past, length);
  const turn = (x: Tensor): Tensor => (encoding ? rotary(x, { ...encoding, ...(positions && { positions }) }) : x);
  const heads = (x: Tensor): Tensor => transpose(reshape(x, [batch, length, -1, headWidth]), [0, 2, 1, 3]);
  const [queries, own] = [turn(heads(query)), { keys: turn(heads(key)), values: heads(value) }];
  const { keys, values } = past?.extend(own) ?? own;
  const y_BHTK = attention(queries, keys, values, {
    causal,
    ...(keyLengths && { keyLengths }),
    ...(past && queryOptions(past, batch)),
  });
  return reshape(transpose(y_BHTK, [0, 2, 1, 3]), query.shape);
};

/** Returns a self-attention branch with separate matrices for query, key and value. */
export const attentionBranch = (options: AttentionOptions): Branch<AttentionParams> => ({
  name: "attention",
  init: (key) => {
    const { width, numHeads, numKeyHeads = numHeads, headWidth = width / numHeads, deviation } = options;
    const { inputBias = false, outputBias = false } = options;
    const input = (id: number, heads: number): Projection =>
      initProjection(foldIn(key, id), [width, heads * headWidth], { bias: inputBias });
    return {
      query: input(0, numHeads),
      key: input(1, numKeyHeads),
      value: input(2, numKeyHeads),
      output: initProjection(foldIn(key, 3), [numHeads * headWidth, width], { bias: outputBias, deviation }),
    };
  },
  apply: ({ query, key, value, output }, x_BTD, context) => {
    const inputs = [project(query, x_BTD), project(key, x_BTD), project(value, x_BTD)] as const;
    return [project(output, attendHeads(options, inputs, context))];
  },
});

/** Wraps an attention branch so that its parameters are in the field `attention` of the block's parameters. */
export const attentionField = <Params>({ name, init, apply }: Branch<Params>): Branch<{ attention: Params }> => ({
  name,
  init: (key) => ({ attention: init(foldIn(key, 0)) }),
  apply: ({ attention: params }, x_BTD, context) => apply(params, x_BTD, context),
});
