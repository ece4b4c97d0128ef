import { ArgumentError, ShapeError } from "../errors.ts";
import { emit, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkNumber, checkOptions } from "../options.ts";
import { formatShape, formatSpec, sameShape } from "../shape.ts";
import { full } from "./elementwise.ts";
import { concat, reshape } from "./movement.ts";

export interface AttentionOptions {
  /**
   * Whether query i attends only to keys 0 ≤ j ≤ i + (Tk − Tq), so that the last query attends to all keys. Default:
   * false.
   */
  readonly causal?: boolean;
  /** Scale factor of the scores. Default: 1/√D. */
  readonly scale?: number;
  /**
   * Number of keys of each batch entry, i32 [B]; later keys are masked and may contain any values, also NaN. Clamped to
   * 0 … Tk. Default: Tk.
   */
  readonly keyLengths?: Tensor;
  /**
   * Position of the first query of each batch entry, i32 [B]; requires `causal`. Query i attends to keys j ≤ i + start.
   * With a key-value cache, this is the number of cached keys before the queries. Default: Tk − Tq.
   */
  readonly queryStarts?: Tensor;
}

/**
 * Returns the optional fourth operand of the operator as a list; empty if neither key lengths nor query starts are
 * given.
 */
const limitsOf = (q: Tensor, k: Tensor, { keyLengths, queryStarts }: AttentionOptions): Tensor[] => {
  if (keyLengths === undefined && queryStarts === undefined) return [];
  const [batch = 0, , queries = 0] = q.shape;
  const keys = k.shape[2] ?? 0;
  const row = (name: string, given: Tensor | undefined, otherwise: number): Tensor => {
    if (given === undefined) return full([1, batch], otherwise, "i32");
    requireOperands("attention", [given]);
    if (given.dtype !== "i32" || !sameShape(given.shape, [batch]))
      throw new ShapeError(
        "attention",
        `${name} are ${formatSpec(given)}, but q ${formatShape(q.shape)} needs i32[${batch}]: one per batch entry; cast or reshape them`,
      );
    return reshape(given, [1, batch]);
  };
  return [concat([row("keyLengths", keyLengths, keys), row("queryStarts", queryStarts, keys - queries)])];
};

/**
 * Scaled dot-product attention `softmax(scale · q kᵀ) v`, per batch entry and head.
 *
 * Computed in tiles with a running maximum and sum, so the queries × keys matrix is never stored. The backward pass
 * recomputes the tiles from the saved logsumexp. If all keys of a query are masked, the result and gradient of the
 * query are zeros.
 *
 * k and v may have fewer heads than q (grouped-query attention): H/Hk adjacent heads of q share one head of k and v.
 *
 * @param q f32, f16 or bf16 [B, H, Tq, D]; sums and softmax are f32.
 * @param k [B, Hk, Tk, D] with the dtype of `q`, H a multiple of Hk.
 * @param v [B, Hk, Tk, D] with the dtype of `q`.
 * @returns [B, H, Tq, D] with the dtype of `q`.
 * Cost: 4·B·H·Tq·Tk·D flops, half as many if causal, and fewer if key lengths are shorter; the backward pass needs 2.5
 * times as many flops. Memory in addition to the operands: B·H·Tq values.
 * @throws ShapeError if shapes or dtypes do not match; ArgumentError if query starts are given without `causal`.
 * @example
 * ```ts
 * const q = NdArray.from([1, 1], [1, 2, 1, 1]);
 * const k = NdArray.from([0, 0], [1, 2, 1, 1]);
 * const v = NdArray.from([2, 4], [1, 2, 1, 1]);
 * const apply = (q: Tensor, k: Tensor, v: Tensor) => attention(q, k, v, { causal: true });
 * const result = await evaluate(apply, referenceBackend())(q, k, v);
 * console.log(result.toNumbers()); // [2, 4]
 * ```
 * Source: Dao et al. 2022, arXiv 2205.14135; Ainslie et al. 2023, arXiv 2305.13245, for grouped heads.
 */
export const attention = (q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions = {}): Tensor => {
  requireOperands("attention", [q, k, v]);
  const { causal = false, scale = 1 / Math.sqrt(q.shape.at(-1) ?? 1) } = checkOptions("attention(q, k, v)", options, {
    causal: true,
    scale: true,
    keyLengths: true,
    queryStarts: true,
  });
  checkNumber("attention", "scale", scale, { from: -Infinity, usual: 0.125 });
  if (options.queryStarts !== undefined && !causal)
    throw new ArgumentError(
      "attention: queryStarts apply to causal attention only, but causal is false; set causal, or leave queryStarts out",
    );
  return emit("attention", [q, k, v, ...limitsOf(q, k, options)], { causal, scale })[0]!;
};
