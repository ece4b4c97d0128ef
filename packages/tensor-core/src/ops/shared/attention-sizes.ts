import { isHalf } from "../../dtype.ts";
import { ShapeError } from "../../errors.ts";
import type { ReferenceArray } from "../../graph/operator.ts";
import { formatShape, formatSpec, sameShape, type TensorSpec } from "../../shape.ts";

export type AttentionParams = { causal: boolean; scale: number };

/** Dimensions of an attention operator: batch size, head counts, sequence lengths and head width. */
export interface AttentionSizes {
  readonly batch: number;
  /** Number of query heads per batch entry. */
  readonly headsEach: number;
  /** Total number of query heads: batch size × `headsEach`. */
  readonly heads: number;
  /** Number of query heads that share one head of keys and values. */
  readonly group: number;
  readonly queries: number;
  readonly keys: number;
  readonly width: number;
}

/** Computes the sizes of an attention node from queries [B, H, T, D] and keys [B, G, S, D]. */
export const attentionSizes = (inputs: readonly TensorSpec[]): AttentionSizes => {
  const [batch, headsEach, queries, width] = inputs[0]!.shape as [number, number, number, number];
  const [, keyHeads, keys] = inputs[1]!.shape as [number, number, number];
  return {
    batch,
    headsEach,
    heads: batch * headsEach,
    group: keyHeads === 0 ? 1 : headsEach / keyHeads,
    queries,
    keys,
    width,
  };
};

/** Throws ShapeError unless the shapes and dtypes of q, k, v and the optional limits match. */
export const needAttention = (q: TensorSpec, k: TensorSpec, v: TensorSpec, limits: TensorSpec | undefined): void => {
  const [a, b] = [q.shape, k.shape];
  const specs = [q, k, v];
  if (specs.some(({ dtype, shape }) => (dtype !== "f32" && !isHalf(dtype)) || dtype !== q.dtype || shape.length !== 4))
    throw new ShapeError(
      "attention",
      `got ${formatSpec(q)}, ${formatSpec(k)} and ${formatSpec(v)}, expected [batch, heads, positions, width], all f32, all f16 or all bf16; cast or reshape them`,
    );
  if (!sameShape(b, v.shape) || a[0] !== b[0] || a[3] !== b[3])
    throw new ShapeError(
      "attention",
      `q ${formatShape(a)}, k ${formatShape(b)} and v ${formatShape(v.shape)} do not fit: k and v must have the same shape, with the batch and width of q`,
    );
  if (a[1] !== b[1] && (a[1] === 0 || b[1] === 0 || a[1]! % b[1]! !== 0))
    throw new ShapeError(
      "attention",
      `q ${formatShape(a)} has ${a[1]} heads, which is not divisible by the ${b[1]} heads of k ${formatShape(b)}; give k and v a number of heads that divides ${a[1]}`,
    );
  if (limits !== undefined && (limits.dtype !== "i32" || !sameShape(limits.shape, [2, a[0]!])))
    throw new ShapeError(
      "attention",
      `limits are ${formatSpec(limits)}, but must be i32[2, ${a[0]}]: key lengths, then query starts`,
    );
};

const clamp = (value: number, least: number, most: number): number => Math.max(least, Math.min(value, most));

/** Visible range of a batch entry: number of keys, and number of keys before the first query. */
export interface AttentionSpan {
  readonly keys: number;
  readonly start: number;
}

/**
 * Returns the visible range of each batch entry. Without limits, all keys are visible, and the last query has the
 * position of the last key.
 */
export const attentionSpans = (
  { batch, queries, keys }: AttentionSizes,
  limits: ArrayLike<number> | undefined,
): AttentionSpan[] =>
  Array.from({ length: batch }, (_, b) =>
    limits === undefined
      ? { keys, start: keys - queries }
      : { keys: clamp(limits[b]!, 0, keys), start: clamp(limits[batch + b]!, -queries, keys) },
  );

/** Returns the number of keys to which a query attends. */
export const visibleKeys = (query: number, { keys, start }: AttentionSpan, causal: boolean): number =>
  causal ? clamp(query + 1 + start, 0, keys) : keys;

/**
 * Returns the number of query-key pairs whose scores are computed, over all heads. Limits from key lengths and query
 * starts are ignored. If causal, each query attends to one more key than the previous query.
 */
export const visiblePairs = (inputs: readonly TensorSpec[], { causal }: AttentionParams): number => {
  const { heads, queries, keys } = attentionSizes(inputs);
  if (!causal) return heads * queries * keys;
  const seeing = Math.min(queries, keys);
  return (heads * seeing * (2 * keys - seeing + 1)) / 2;
};

/** Returns the index of the first row of k and v for a query row, that is, the start of the query's key head. */
export const firstKey = (row: number, { queries, keys, group }: AttentionSizes): number =>
  Math.floor(Math.floor(row / queries) / group) * keys;

/** Computes the scaled scores of one query row with its visible keys. */
export const scoresOf = (
  row: number,
  q: ReferenceArray,
  k: ReferenceArray,
  { causal, scale }: AttentionParams,
  spans: readonly AttentionSpan[],
): Float64Array => {
  const sizes = attentionSizes([q.spec, k.spec]);
  const { queries, width, headsEach } = sizes;
  const first = firstKey(row, sizes);
  const span = spans[Math.floor(row / queries / headsEach)]!;
  return Float64Array.from({ length: visibleKeys(row % queries, span, causal) }, (_, j) => {
    let dot = 0;
    for (let d = 0; d < width; d++) dot += q.data[row * width + d]! * k.data[(first + j) * width + d]!;
    return dot * scale;
  });
};
