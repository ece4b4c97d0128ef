import { ShapeError } from "../errors.ts";
import { arange, less, where, zeros } from "../functions/elementwise.ts";
import { scatterAdd } from "../functions/indexing.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";

export type CompactParams = { readonly capacity: number };

/**
 * The first `capacity` entries of x (f32 [n]) whose magnitude is at least that of `bound` (f32 []), in order of
 * position. Outputs: values; positions (i32), both padded with zeros; the number of such entries (i32), including those
 * beyond the capacity; and the largest magnitude of x. Zeros are never included. A NaN entry is always included and
 * counts as the largest; a NaN bound counts as infinite.
 */
export const compactOperator: Operator = defineOperator<CompactParams>({
  name: "compact",
  infer: ([x, bound], { capacity }) => {
    if (x!.dtype !== "f32" || x!.shape.length !== 1)
      throw new ShapeError("compact", `got ${formatSpec(x!)}, expected f32 [n]; cast it first, and flatten it`);
    if (bound!.dtype !== "f32" || bound!.shape.length !== 0)
      throw new ShapeError(
        "compact",
        `the bound must be an f32 scalar, got ${formatSpec(bound!)}; reduce or reshape it to f32[]`,
      );
    if (!Number.isInteger(capacity) || capacity < 0)
      throw new ShapeError("compact", `capacity ${capacity} is not a size; use an integer of at least 0`);
    return [
      { dtype: "f32", shape: [capacity] },
      { dtype: "i32", shape: [capacity] },
      { dtype: "i32", shape: [] },
      { dtype: "f32", shape: [] },
    ];
  },
  // Gradient of the values only; no gradient flows through the largest magnitude.
  vjp: ({ inputs: [x], outputs: [values, indices, count], cotangents: [g] }) => {
    const selected = where(less(arange(values!.shape[0]!), count!), g!, 0);
    return [scatterAdd(zeros(x!.shape), indices!, selected), undefined];
  },
  cost: ([x], outputs) => ({
    flops: 2 * elementCount(x!.shape),
    bytesRead: byteLength(x!),
    bytesWritten: outputs.reduce((total, output) => total + byteLength(output), 0),
  }),
  reference: ([x, bound], { capacity }) => {
    const [values, indices] = [new Float64Array(capacity), new Float64Array(capacity)];
    const least = Number.isNaN(bound!.data[0]!) ? Infinity : Math.abs(bound!.data[0]!);
    let [count, greatest] = [0, 0];
    x!.data.forEach((value, i) => {
      const magnitude = Math.abs(value);
      greatest = Math.max(greatest, magnitude);
      if (magnitude === 0 || magnitude < least) return;
      if (count < capacity) [values[count], indices[count]] = [value, i];
      count++;
    });
    return [values, indices, Float64Array.of(count), Float64Array.of(greatest)];
  },
});
