import { emit, emitOne, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkNumber, checkOptions } from "../options.ts";

export interface AttentionOptions {
  /** Query i sees keys 0 ≤ j ≤ i + (keys − queries) only: the last query sees all keys. Default: false. */
  readonly causal?: boolean;
  /** Factor of the scores. Default: 1/√D. */
  readonly scale?: number;
}

/**
 * Scaled dot-product attention `softmax(scale · q kᵀ) v`, per batch entry and head.
 *
 * Computed tile by tile with a running maximum and sum, so that no queries × keys matrix is ever stored; the backward pass computes the tiles
 * anew from the saved logsumexp. A query that sees no key yields zeros.
 *
 * @param q f32 or f16 [B, H, Tq, D].  @param k [B, H, Tk, D].  @param v [B, H, Tk, D], all of one dtype; sums and softmax are f32.
 * @returns [B, H, Tq, D] of that dtype.
 * Cost: 4·B·H·Tq·Tk·D flops, half of it when causal; 2.5 times that backward. Memory beside the operands: B·H·Tq values.
 * Source: Dao et al. 2022, arXiv 2205.14135.
 */
export const attention = (q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions = {}): Tensor => {
  requireOperands("attention", [q, k, v]);
  const { causal = false, scale = 1 / Math.sqrt(q.shape.at(-1) ?? 1) } = checkOptions("attention(q, k, v)", options, {
    causal: true,
    scale: true,
  });
  checkNumber("attention", "scale", scale, { from: -Infinity, usual: 0.125 });
  return emit("attention", [q, k, v], { causal, scale })[0]!;
};

/**
 * Rotary position embedding: entry i and i + D/2 of the row at position t are turned as a pair by the angle `(t + offset) · base^(−2i/D)`.
 *
 * @param x f32 [..., T, D], D even.
 * Source: Su et al. 2021, arXiv 2104.09864, with halves paired as in GPT-NeoX and Llama.
 */
export const rotary = (x: Tensor, base = 10_000, offset = 0): Tensor => {
  checkNumber("rotary", "base", base, { from: 1, usual: 10_000 });
  checkNumber("rotary", "offset", offset, { from: -Infinity, usual: 0 });
  return emitOne("rotary", [x], { base, offset, sign: 1 });
};
