import { emitOne } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * 32 bools to a word, along the last dimension: one bit per value on the wire.
 *
 * @param x bool [..., n].
 * @returns u32 [..., ⌈n/32⌉]; element i is bit `i mod 32` of word `⌊i/32⌋`, bits behind the last element are 0.
 */
export const packBits = (x: Tensor): Tensor => emitOne("pack-bits", [x]);

/**
 * The bools that `packBits` packed.
 *
 * @param words u32 [..., ⌈count/32⌉].
 * @returns bool [..., count].
 */
export const unpackBits = (words: Tensor, count: number): Tensor => emitOne("unpack-bits", [words], { count });
