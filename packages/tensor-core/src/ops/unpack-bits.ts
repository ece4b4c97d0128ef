import { ShapeError } from "../errors.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";

export type UnpackBitsParams = { readonly count: number };

/** Unpacks the first `count` bits of each row of words (u32) to bools: element i is bit `i mod 32` of word `⌊i/32⌋`. */
export const unpackBitsOperator: Operator = defineOperator<UnpackBitsParams>({
  name: "unpack-bits",
  infer: ([words], { count }) => {
    if (!Number.isInteger(count) || count < 0)
      throw new ShapeError("unpackBits", `count ${count} is not a size; use an integer of at least 0`);
    if (words!.dtype !== "u32" || words!.shape.length === 0 || words!.shape.at(-1) !== Math.ceil(count / 32)) {
      throw new ShapeError(
        "unpackBits",
        `got ${formatSpec(words!)}, but ${count} bits take u32 [..., ${Math.ceil(count / 32)}]; pass the count that was packed`,
      );
    }
    return [{ dtype: "bool", shape: [...words!.shape.slice(0, -1), count] }];
  },
  vjp: () => [undefined],
  cost: ([words], [bits]) => ({
    flops: elementCount(bits!.shape),
    bytesRead: byteLength(words!),
    bytesWritten: byteLength(bits!),
  }),
  reference: ([words], { count }, [bits]) => {
    const perRow = words!.spec.shape.at(-1)!;
    return [
      Float64Array.from({ length: elementCount(bits!.shape) }, (_, i) => {
        const word = words!.data[Math.floor(i / count) * perRow + Math.floor((i % count) / 32)]!;
        return Math.floor(word / 2 ** ((i % count) % 32)) % 2;
      }),
    ];
  },
});
