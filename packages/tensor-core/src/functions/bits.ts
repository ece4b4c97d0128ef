import { emitOne } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * Pack 32 bools per word along the last dimension, for example to send one bit per value.
 *
 * @param x bool [..., n].
 * @returns u32 [..., ⌈n/32⌉]; element i is bit `i mod 32` of word `⌊i/32⌋`. Unused bits of the last word are 0.
 */
export const packBits = (x: Tensor): Tensor => emitOne("pack-bits", [x]);

/**
 * Unpack bools from words: the inverse of `packBits`.
 *
 * @param words u32 [..., ⌈count/32⌉].
 * @returns bool [..., count].
 */
export const unpackBits = (words: Tensor, count: number): Tensor => emitOne("unpack-bits", [words], { count });
