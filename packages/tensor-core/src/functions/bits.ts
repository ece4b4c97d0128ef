import { emitOne } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * Packs 32 bools per word along the last dimension, for example to send one bit per value.
 *
 * @param x bool [..., n].
 * @returns u32 [..., ⌈n/32⌉]; element i is bit `i mod 32` of word `⌊i/32⌋`. Unused bits of the last word are 0.
 * @example
 * ```ts
 * const apply = (x: Tensor) => packBits(x);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([0, 1, 1], [3], "bool"));
 * console.log(result.toNumbers()); // [6]
 * ```
 */
export const packBits = (x: Tensor): Tensor => emitOne("pack-bits", [x]);

/**
 * Unpacks bools from words: the inverse of `packBits`.
 *
 * @param words u32 [..., ⌈count/32⌉].
 * @returns bool [..., count].
 * @example
 * ```ts
 * const apply = (x: Tensor) => unpackBits(packBits(x), 3);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([0, 1, 1], [3], "bool"));
 * console.log(result.toNumbers()); // [0, 1, 1]
 * ```
 */
export const unpackBits = (words: Tensor, count: number): Tensor => emitOne("unpack-bits", [words], { count });
