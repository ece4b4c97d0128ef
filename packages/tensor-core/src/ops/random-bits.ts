import { ShapeError } from "../errors.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";
import { threefryWord } from "../random.ts";

export type RandomBitsParams = { readonly shape: readonly number[] };

/**
 * Random u32 tensor of `shape`: flat element i is word `i mod 2` of Threefry2x32-20 under the key (u32[2]) at counter
 * `(⌊i/2⌋, 0)`.
 */
export const randomBitsOperator: Operator = defineOperator<RandomBitsParams>({
  name: "random-bits",
  infer: ([key], { shape }) => {
    if (key!.dtype !== "u32" || key!.shape.length !== 1 || key!.shape[0] !== 2) {
      throw new ShapeError(
        "randomBits",
        `a key must be u32[2], got ${formatSpec(key!)}; create one with randomKey(seed) or foldIn(key, data)`,
      );
    }
    return [{ dtype: "u32", shape }];
  },
  vjp: () => [undefined],
  // 20 rounds of add, rotate and xor per two words.
  cost: (_, [output]) => ({ flops: 40 * elementCount(output!.shape), bytesRead: 8, bytesWritten: byteLength(output!) }),
  reference: ([key], { shape }) => [
    Float64Array.from({ length: elementCount(shape) }, (_, i) => threefryWord(key!.data, i)),
  ],
});
