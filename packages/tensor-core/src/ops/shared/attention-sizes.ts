import type { ReferenceArray } from "../../graph/operator.ts";
import type { TensorSpec } from "../../shape.ts";

export type AttentionParams = { causal: boolean; scale: number };

/** Batch entries and heads are independent: `heads` counts both. */
export const attentionSizes = (inputs: readonly TensorSpec[]): { heads: number; queries: number; keys: number; width: number } => {
  const [batch, heads, queries, width] = inputs[0]!.shape as [number, number, number, number];
  return { heads: batch * heads, queries, keys: inputs[1]!.shape[2]!, width };
};

/** Keys that a query sees. */
export const visibleKeys = (query: number, queries: number, keys: number, causal: boolean): number =>
  causal ? Math.max(0, Math.min(keys, query + 1 + keys - queries)) : keys;

/** Pairs of query and key that are multiplied. */
export const visiblePairs = (inputs: readonly TensorSpec[], { causal }: AttentionParams): number => {
  const { heads, queries, keys } = attentionSizes(inputs);
  return (
    heads * Array.from({ length: queries }, (_, query) => visibleKeys(query, queries, keys, causal)).reduce((sum, count) => sum + count, 0)
  );
};

/** Scaled scores of one query row with the keys that it sees. */
export const scoresOf = (row: number, q: ReferenceArray, k: ReferenceArray, { causal, scale }: AttentionParams): Float64Array => {
  const { queries, keys, width } = attentionSizes([q.spec, k.spec]);
  const first = Math.floor(row / queries) * keys;
  return Float64Array.from({ length: visibleKeys(row % queries, queries, keys, causal) }, (_, j) => {
    let dot = 0;
    for (let d = 0; d < width; d++) dot += q.data[row * width + d]! * k.data[(first + j) * width + d]!;
    return dot * scale;
  });
};
