import { ShapeError } from "../errors.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";

/**
 * Packs 32 bools per word (u32): element i of a row becomes bit `i mod 32` of word `⌊i/32⌋`; unused bits of the last
 * word are 0.
 */
export const packBitsOperator: Operator = defineOperator({
  name: "pack-bits",
  fold: { dtype: "bool", from: (_, numDims) => numDims - 1 },
  infer: ([x]) => {
    if (x!.dtype !== "bool" || x!.shape.length === 0)
      throw new ShapeError("packBits", `got ${formatSpec(x!)}, expected bool [..., n]; compare or cast it first`);
    return [{ dtype: "u32", shape: [...x!.shape.slice(0, -1), Math.ceil(x!.shape.at(-1)! / 32)] }];
  },
  vjp: () => [undefined],
  cost: ([x], [words]) => ({
    flops: elementCount(x!.shape),
    bytesRead: byteLength(x!),
    bytesWritten: byteLength(words!),
  }),
  reference: ([x], _, [words]) => {
    const count = x!.spec.shape.at(-1)!;
    const perRow = words!.shape.at(-1)!;
    const result = new Float64Array(elementCount(words!.shape));
    x!.data.forEach((bit, i) => {
      result[Math.floor(i / count) * perRow + Math.floor((i % count) / 32)]! += bit * 2 ** ((i % count) % 32);
    });
    return [result];
  },
});
