import { ShapeError } from "../errors.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";

export type NonzeroParams = { readonly capacity: number };

/**
 * Indices (i32) of the first `capacity` true entries of a bool vector, ascending, padded with 0; and the number of
 * valid indices (i32).
 */
export const nonzeroOperator: Operator = defineOperator<NonzeroParams>({
  name: "nonzero",
  infer: ([mask], { capacity }) => {
    if (mask!.dtype !== "bool" || mask!.shape.length !== 1)
      throw new ShapeError(
        "nonzero",
        `got ${formatSpec(mask!)}, expected bool [n]; compare or cast it first, and flatten it`,
      );
    if (!Number.isInteger(capacity) || capacity < 0)
      throw new ShapeError("nonzero", `capacity ${capacity} is not a size; use an integer of at least 0`);
    return [
      { dtype: "i32", shape: [capacity] },
      { dtype: "i32", shape: [] },
    ];
  },
  vjp: () => [undefined],
  cost: ([mask], outputs) => ({
    flops: elementCount(mask!.shape),
    bytesRead: byteLength(mask!),
    bytesWritten: outputs.reduce((total, output) => total + byteLength(output), 0),
  }),
  reference: ([mask], { capacity }) => {
    const indices = new Float64Array(capacity);
    let count = 0;
    for (let i = 0; i < mask!.data.length && count < capacity; i++) if (mask!.data[i] !== 0) indices[count++] = i;
    return [indices, Float64Array.of(count)];
  },
});
