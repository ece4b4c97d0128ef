import { ShapeError } from "../errors.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { formatSpec } from "../shape.ts";
import { threefry2x32 } from "../random.ts";

/**
 * Derives a new key (u32[2]) from a key and a u32 scalar: Threefry2x32-20 under the key at counter `(data, 1)`.
 * `random-bits` never uses this counter.
 */
export const foldInOperator: Operator = defineOperator({
  name: "fold-in",
  infer: ([key, data]) => {
    if (
      key!.dtype !== "u32" ||
      key!.shape.length !== 1 ||
      key!.shape[0] !== 2 ||
      data!.dtype !== "u32" ||
      data!.shape.length !== 0
    ) {
      throw new ShapeError(
        "foldIn",
        `takes a key u32[2] and a u32 scalar, got ${formatSpec(key!)} and ${formatSpec(data!)}; create a key with randomKey(seed)`,
      );
    }
    return [{ dtype: "u32", shape: [2] }];
  },
  vjp: () => [undefined, undefined],
  cost: () => ({ flops: 80, bytesRead: 12, bytesWritten: 8 }),
  reference: ([key, data]) => [Float64Array.from(threefry2x32(key!.data, [data!.data[0]!, 1]))],
});
